package config

import (
	"errors"
	"net/textproto"
	"strconv"
	"strings"
	"time"
)

// Broker says how the webhook broker works.
type Broker struct {
	MaxRetry      int           // attempts after the first one, until a job is dead
	RetryDelay    time.Duration // before the first retry; each further one comes after twice the time
	FailSafe      string        // FailSafeOn, FailSafeOff or FailSafeWorker
	RationalDelay time.Duration // after which the worker of FailSafeWorker re-triggers a message
	TokenHeader   string        // of calls, with the token of the consumer

	// What a node creates or changes at its start.
	Producers, Channels, Consumers BrokerParties
}

// How messages are found that a node has accepted and did not deliver.
const (
	FailSafeOn     = "on"     // other nodes take over from a dead one
	FailSafeOff    = "off"    // a node delivers what it has accepted alone
	FailSafeWorker = "worker" // as off, and this node re-triggers messages that wait for too long
)

func defaultBroker() Broker {
	return Broker{MaxRetry: 5, RetryDelay: 5 * time.Second, FailSafe: FailSafeOn, RationalDelay: 2 * time.Second, TokenHeader: "X-Broker-Consumer-Token"}
}

// A retryValue is a number of retries.
type retryValue int

const maxRetries = 100

func (v *retryValue) String() string { return strconv.Itoa(int(*v)) }

func (v *retryValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > maxRetries {
		return errors.New("want a whole number of 0 to 100")
	}
	*v = retryValue(n)
	return nil
}

// A pauseValue is a time between two steps. A number without a unit is in seconds.
type pauseValue time.Duration

const (
	minPause = 10 * time.Millisecond
	maxPause = time.Hour
)

func (v *pauseValue) String() string { return time.Duration(*v).String() }

func (v *pauseValue) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		d, err = time.ParseDuration(s + "s")
	}
	if err != nil || d < minPause || d > maxPause {
		return errors.New("want a time of 10ms to 1h, such as 5s")
	}
	*v = pauseValue(d)
	return nil
}

// A headerValue is the name of a header that a call carries for the hub.
type headerValue string

func (v *headerValue) String() string { return string(*v) }

func (v *headerValue) Set(s string) error {
	name := textproto.CanonicalMIMEHeaderKey(s)
	if name == "" || len(name) > 64 || strings.Trim(name, headerLetters) != "" || isOwnHeader(name) {
		return errors.New("want the name of a header that is free, such as X-Broker-Consumer-Token")
	}
	*v = headerValue(name)
	return nil
}

const headerLetters = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// isOwnHeader reports whether calls have a header with another meaning.
func isOwnHeader(name string) bool {
	for _, prefix := range []string{"Webhook-", "Proxy-", "Sec-", "X-Broker-Message-", "X-Broker-Channel-", "X-Broker-Consumer-Id", "X-Broker-Metadata-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "Host", "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "Keep-Alive",
		"Upgrade", "Te", "Trailer", "Expect", "Date", "User-Agent", "Accept-Encoding":
		return true
	}
	return false
}
