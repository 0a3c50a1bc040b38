package config

import (
	"errors"
	"strconv"
	"time"
)

// Objects configures the ledger of objects, which records the events that stores
// report about their objects.
type Objects struct {
	Shards    int           // number of partitions of a new bucket; existing buckets keep their number
	Queue     string        // queue without sessions for object events; "" for none
	Retention time.Duration // how long a row is kept after a newer row of the same version exists; 0 for forever
	Topic     bool          // publish each change of the current state of an object to domain.ObjectsTopic

	Stores    ObjectStores
	LinkTime  time.Duration // maximum and default validity of a link
	LinkLimit Size          // maximum size of an object for which the hub returns a link; 0 for no limit
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

// A linkTimeValue is the validity of a link.
type linkTimeValue time.Duration

const (
	minLinkTime = time.Second
	maxLinkTime = 7 * day // the limit of both S3 and Azure
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
