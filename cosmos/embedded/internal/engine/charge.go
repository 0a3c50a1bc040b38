package engine

import "strconv"

// A Charge is an amount of request units, in millionths, so that sums are exact on every machine.
type Charge int64

const requestUnit Charge = 1_000_000

// String formats the charge for a response header.
func (c Charge) String() string {
	return strconv.FormatFloat(float64(c)/float64(requestUnit), 'f', -1, 64)
}

// RequestUnits returns the charge in request units.
func (c Charge) RequestUnits() float64 { return float64(c) / float64(requestUnit) }

// The published charges for reading and writing an item of 1, 2, 4 … 2048 KB.
var (
	readTable = [12]Charge{
		1_000_000, 1_040_000, 1_140_000, 1_330_000, 1_670_000, 2_190_000,
		4_760_000, 9_950_000, 20_280_000, 40_950_000, 145_900_000, 291_800_000,
	}
	writeTable = [12]Charge{
		4_950_000, 6_290_000, 6_670_000, 7_040_000, 9_520_000, 11_230_000,
		22_670_000, 48_190_000, 98_290_000, 184_570_000, 625_000_000, 1_250_000_000,
	}
)

// lookUpCharge interpolates between the item sizes in the table.
func lookUpCharge(table *[12]Charge, size int) Charge {
	if size <= 1024 {
		return table[0]
	}
	for i := 1; ; i++ {
		high := 1024 << i
		if size <= high || i == len(table)-1 {
			low := high / 2
			return table[i-1] + (table[i]-table[i-1])*Charge(size-low)/Charge(high-low)
		}
	}
}

const (
	perTerm        = requestUnit / 5      // for each indexed term that is written or removed
	perPatch       = requestUnit * 4 / 10 // for each operation of a patch
	perQueryPage   = requestUnit * 22 / 10
	perPredicate   = requestUnit * 7 / 10
	perLoaded      = requestUnit * 2 / 100
	perLoadedKB    = requestUnit * 73 / 10_000
	chargeOfMiss   = requestUnit
	minWriteCharge = 5 * requestUnit
)

func readCharge(size int) Charge  { return lookUpCharge(&readTable, size) }
func writeCharge(size int) Charge { return max(minWriteCharge, lookUpCharge(&writeTable, size)) }

func createCharge(size, terms int) Charge { return writeCharge(size) + perTerm*Charge(terms) }
func deleteCharge(size, terms int) Charge { return createCharge(size, terms) }

// replaceCharge returns the charge of a replacement that removes or adds changed terms. A changed value removes one
// term and adds one, which costs 0.4 RU.
func replaceCharge(before, now, changed int) Charge {
	return writeCharge(before) + writeCharge(now) + perTerm*Charge(changed)
}

// refusedCharge is the charge of a write that failed because of a precondition or conflict.
func refusedCharge(existing int) Charge { return max(requestUnit, readCharge(existing)) }

// loadCharge returns the charge for a document of the given size that a query loads.
func (e *Engine) loadCharge(size int) Charge {
	if e.pessimistic {
		return readCharge(size)
	}
	return perLoaded + perLoadedKB*Charge(size)/1024
}
