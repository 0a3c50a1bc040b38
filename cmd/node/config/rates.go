package config

import (
	"fmt"
	"strconv"
	"strings"
)

// A rateValue is a number per second. Zero means no limit; its text is "none".
type rateValue int

const maxRate = 1_000_000

func (v *rateValue) String() string {
	if *v == 0 {
		return none
	}
	return strconv.Itoa(int(*v))
}

func (v *rateValue) Set(s string) error {
	if strings.EqualFold(s, none) {
		*v = 0
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxRate {
		return fmt.Errorf("want a whole number from 1 to %d, or none", maxRate)
	}
	*v = rateValue(n)
	return nil
}
