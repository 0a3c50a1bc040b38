package config

import (
	"errors"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// Broker configures the webhook broker.
type Broker struct {
	MaxRetry      int           // retries of a job after its first attempt; after the last one, the job is dead
	RetryDelay    time.Duration // pause before the first retry; it doubles with each retry
	FailSafe      string        // FailSafeOn, FailSafeOff or FailSafeWorker
	RationalDelay time.Duration // how long a job must be overdue before the worker re-triggers it
	RetriggerURL  string        // URL of the hub whose jobs the worker re-triggers; "" for this hub
	TokenHeader   string        // header of calls that contains the consumer's token

	// Parties that a node creates or updates when it starts.
	Producers, Channels, Consumers BrokerParties
}

// Values of FailSafe, which says when this node takes over the deliveries of a
// node that died.
const (
	FailSafeOn     = "on"     // the node takes over at any time
	FailSafeOff    = "off"    // the node takes over only when it starts, or when a job is re-triggered
	FailSafeWorker = "worker" // like FailSafeOff, but a worker re-triggers overdue jobs
)

func defaultBroker() Broker {
	return Broker{MaxRetry: 5, RetryDelay: 5 * time.Second, FailSafe: FailSafeOn, RationalDelay: 2 * time.Second, TokenHeader: "X-Broker-Consumer-Token"}
}

// A retryValue is a number of retries, from 0 to maxRetries.
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

// A pauseValue is a pause. A number without a unit is in seconds.
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

// A hubURL is the URL of a hub. It may contain a path, which precedes the paths
// of the hub's API.
type hubURL string

func (v *hubURL) String() string { return string(*v) }

func (v *hubURL) Set(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return errors.New("want a URL without a query, such as https://hub.example.org")
	}
	*v = hubURL(strings.TrimRight(s, "/"))
	return nil
}

// validateBroker checks the URL of the fail-safe worker.
func (c *Config) validateBroker(fault faultFunc) {
	u, err := url.Parse(c.Broker.RetriggerURL)
	switch {
	case err != nil: // Set has already rejected the URL
	case c.Broker.RetriggerURL == "" && c.Broker.FailSafe == FailSafeWorker && c.TLS.Certificate != "":
		fault("broker.retrigger-url", "the worker of broker.fail-safe needs the address for which tls.cert is; set it, such as https://hub.example.org")
	case u.Scheme == "http" && !loopback.IsDestination(u.Hostname()) && !c.Insecure:
		fault("broker.retrigger-url", "with http, the network can read the token of the operators; use https, or give --insecure if the network is trusted")
	}
}

// A headerValue is the name of a header that is allowed in calls.
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

// isOwnHeader reports whether the hub already uses a header for another
// purpose.
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
