package query

import (
	"math"
	"math/big"
)

// Functions of package math may be wrong in the last digit; Azure is more precise. The functions in this file compute
// with this many bits and round once, at the end.
const precision = 160

// precisePi has enough digits to reduce the largest argument of preciseTan.
var precisePi, _ = new(big.Float).SetPrec(2 * precision).SetString("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")

// preciseLn10 is the natural logarithm of 10.
var preciseLn10 = preciseLn(10)

// preciseSteps counts the work of one function in this file.
func preciseSteps([]Value) int { return 500 }

func newPrecise() *big.Float { return new(big.Float).SetPrec(precision) }

func roundPrecise(f *big.Float) float64 {
	result, _ := f.Float64()
	return result
}

// preciseLn returns the natural logarithm of x, which must be finite and positive.
func preciseLn(x float64) *big.Float {
	mantissa, exponent := math.Frexp(x) // x = mantissa · 2^exponent
	sum := atanhSeries(mantissa, 1)
	two := atanhSeries(2, 1)
	return sum.Add(sum, two.Mul(two, newPrecise().SetInt64(int64(exponent))))
}

// atanhSeries returns ln(a/b), computed as the series of 2·atanh((a-b)/(a+b)).
func atanhSeries(a, b float64) *big.Float {
	top, bottom := newPrecise().SetFloat64(a), newPrecise().SetFloat64(b)
	z := newPrecise().Quo(newPrecise().Sub(top, bottom), newPrecise().Add(top, bottom))
	square, power, sum := newPrecise().Mul(z, z), newPrecise().Set(z), newPrecise()
	for n := int64(1); power.Sign() != 0 && power.MantExp(nil) > -precision; n += 2 {
		sum.Add(sum, newPrecise().Quo(power, newPrecise().SetInt64(n)))
		power.Mul(power, square)
	}
	return sum.Add(sum, sum)
}

// hasLogarithm reports whether x is finite and positive.
func hasLogarithm(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// logarithm returns the logarithm of x to a base.
func logarithm(x, base float64) float64 {
	plain := math.Log(x) / math.Log(base)
	if !hasLogarithm(x) || !hasLogarithm(base) || base == 1 {
		return plain
	}
	return roundPrecise(newPrecise().Quo(preciseLn(x), preciseLn(base)))
}

// logarithm10 returns the decimal logarithm of x.
func logarithm10(x float64) float64 {
	if !hasLogarithm(x) {
		return math.Log10(x)
	}
	return roundPrecise(newPrecise().Quo(preciseLn(x), preciseLn10))
}

// maxPreciseAngle is the largest angle for which precisePi has enough digits.
const maxPreciseAngle = 1 << 40

// preciseTan returns the tangent of an angle.
func preciseTan(x float64) float64 {
	if x == 0 || math.Abs(x) > maxPreciseAngle || math.IsNaN(x) {
		return math.Tan(x)
	}
	turns := math.Round(x / math.Pi)
	angle := new(big.Float).SetPrec(2 * precision).SetFloat64(x)
	angle.Sub(angle, new(big.Float).SetPrec(2*precision).Mul(precisePi, big.NewFloat(turns)))
	r := newPrecise().Set(angle)
	square := newPrecise().Mul(r, r)
	sine, cosine := newPrecise(), newPrecise()
	term := newPrecise().SetInt64(1) // signed term r^n/n! of the series
	for n := int64(1); term.Sign() != 0 && term.MantExp(nil) > -2*precision; n += 2 {
		cosine.Add(cosine, term)
		odd := newPrecise().Quo(newPrecise().Mul(term, r), newPrecise().SetInt64(n))
		sine.Add(sine, odd)
		term = newPrecise().Quo(newPrecise().Mul(term, square), newPrecise().SetInt64(-n*(n+1)))
	}
	return roundPrecise(newPrecise().Quo(sine, cosine))
}
