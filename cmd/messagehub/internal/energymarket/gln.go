package energymarket

import (
	"crypto/rand"
	"fmt"
)

// NewGLN returns the Global Location Number that begins with these 12 digits.
// The 13th digit is the check digit: with alternating weights 1 and 3, the sum
// of all 13 digits is a multiple of 10.
func NewGLN(first12 string) string {
	sum := 0
	for i, c := range first12 {
		weight := 1
		if i%2 == 1 {
			weight = 3
		}
		sum += weight * int(c-'0')
	}
	return fmt.Sprintf("%s%d", first12, (10-sum%10)%10)
}

// RandomDigits returns the first 12 digits of a random Danish number. Such a
// number begins with 579.
func RandomDigits() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails
	digits := []byte("579")
	for _, x := range b {
		digits = append(digits, '0'+x%10)
	}
	return string(digits)
}
