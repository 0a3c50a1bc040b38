package config

import (
	"errors"
	"strconv"
	"time"
)

// Objects configures the ledger, which records events reported by object
// stores.
type Objects struct {
	Shards    int           // number of partitions of a new bucket; existing buckets do not change
	Queue     string        // queue without sessions for the events of objects; "" for none
	Retention time.Duration // how long a row is stored after a newer row of the same version exists; 0 for forever
	Topic     bool          // publish each change of an object's current state to domain.ObjectsTopic

	Stores    ObjectStores
	LinkTime  time.Duration // default and maximum validity of a link
	LinkLimit Size          // maximum size of an object to which the hub returns a link; 0 for no limit
}

const maxObjectShards = 256

func defaultObjects() Objects {
	return Objects{Shards: 16, Queue: "object-events", LinkTime: maxLinkTime}
}

// A shardsValue is the number of partitions of a bucket.
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

// A linkTimeValue is how long a link is valid.
type linkTimeValue time.Duration

const (
	minLinkTime = time.Second
	maxLinkTime = 7 * day // limit of S3 and Azure
)

func (v *linkTimeValue) String() string { return daysText(time.Duration(*v)) }

func (v *linkTimeValue) Set(s string) error {
	d, err := parseDays(s)
	if err != nil || d < minLinkTime || d > maxLinkTime {
		return errors.New("want a time of 1s to 7d, such as 5m")
	}
	*v = linkTimeValue(d)
	return nil
}
