package config

import (
	"errors"
	"strconv"
)

// Objects says how what stores report about their objects is kept.
type Objects struct {
	Shards int    // partitions of a bucket whose first event comes; those of other buckets stay
	Queue  string // without sessions, by which their events come; "": none
}

const maxObjectShards = 256

func defaultObjects() Objects { return Objects{Shards: 16, Queue: "object-events"} }

// A shardsValue is a number of partitions of a bucket.
type shardsValue int

func (v *shardsValue) String() string { return strconv.Itoa(int(*v)) }

func (v *shardsValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxObjectShards {
		return errors.New("want a whole number of 1 to 256")
	}
	*v = shardsValue(n)
	return nil
}
