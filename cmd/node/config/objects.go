package config

import (
	"errors"
	"strconv"
	"time"
)

// Objects says how events of stores about their objects are stored.
type Objects struct {
	Shards    int           // partitions of a new bucket; those of existing buckets do not change
	Queue     string        // queue without sessions for their events; "": none
	Retention time.Duration // how long rows are kept after a newer one of their version has replaced them; 0: forever
	Topic     bool          // publish changes of the current state of objects to domain.ObjectsTopic

	Stores    ObjectStores
	LinkTime  time.Duration // maximum and default of the time in which a link can be used
	LinkLimit Size          // maximum size of an object that may have a link; 0: no limit
}

const maxObjectShards = 256

func defaultObjects() Objects {
	return Objects{Shards: 16, Queue: "object-events", LinkTime: maxLinkTime}
}

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

// A linkTimeValue is how long a link can be used.
type linkTimeValue time.Duration

const (
	minLinkTime = time.Second
	maxLinkTime = 7 * day // the limit of S3 and of Azure
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
