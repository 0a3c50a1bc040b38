package query

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// A subquery is evaluated for every row of the query around it.
type subquery struct {
	kind string // "" for a single value, "EXISTS" or "ARRAY"
	at   int
	body *selection
}

func (e subquery) eval(slots [][]byte) Value {
	switch e.kind {
	case "EXISTS":
		found := false
		e.body.results(slots, func([]byte) bool {
			found = true
			return false
		})
		return boolean(found)
	case "ARRAY":
		var b listBuilder
		e.body.results(slots, func(raw []byte) bool {
			b.add(raw)
			return spend(slots, 1+len(raw)/bytesPerStep)
		})
		return b.value()
	}
	return ParseValue(e.single(slots))
}

func (e subquery) raw(slots [][]byte) []byte {
	if e.kind != "" {
		return e.eval(slots).Append(nil)
	}
	return e.single(slots)
}

// single gives the only result, nil if there is none. Two are a failure.
func (e subquery) single(slots [][]byte) (found []byte) {
	e.body.results(slots, func(raw []byte) bool {
		if found != nil {
			fail(slots, e.at, tooMany)
			return false
		}
		found = raw
		return true
	})
	return found
}

// The first slots belong to evaluation itself. Expressions give values, not
// errors, because nearly none of them can fail and they are evaluated for
// every document; the few failures are kept here.
const (
	failureSlot = iota // a position, a colon and a reason
	effortSlot         // a counter of steps
	ownSlots
)

const (
	tooMany  = "the cardinality of a scalar subquery result set cannot be greater than one"
	tooLong  = "the query takes too long: its joins and subqueries give too many rows for one document"
	badRegex = "the regular expression is not supported"

	maxSteps     = 500_000 // a second at the most
	bytesPerStep = 16
	perRegex     = 100 // steps to compile one
)

// fail keeps the first failure.
func fail(slots [][]byte, at int, reason string) {
	if slots[failureSlot] == nil {
		slots[failureSlot] = []byte(strconv.Itoa(at) + ":" + reason)
	}
}

// Failure says why the evaluation of a query that was parsed stopped; then
// what it gave is void. It is nil for nearly every query.
func (q *Query) Failure(slots [][]byte) error {
	if slots[failureSlot] == nil {
		return nil
	}
	at, reason, _ := strings.Cut(string(slots[failureSlot]), ":")
	position, err := strconv.Atoi(at)
	if err != nil {
		return err
	}
	return &Error{position, reason}
}

// spend counts steps for one document; it reports false when evaluation has
// to stop.
func spend(slots [][]byte, steps int) bool {
	if slots[failureSlot] != nil {
		return false
	}
	if slots[effortSlot] == nil {
		slots[effortSlot] = make([]byte, 8)
	}
	n := binary.LittleEndian.Uint64(slots[effortSlot]) + uint64(steps) //nolint:gosec // steps is a length
	binary.LittleEndian.PutUint64(slots[effortSlot], n)
	if n > maxSteps {
		fail(slots, 0, tooLong)
	}
	return n <= maxSteps
}
