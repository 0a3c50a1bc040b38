package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Push configures the calls of receivers.
type Push struct {
	Workers     int             // maximum number of concurrent calls
	Concurrency int             // maximum number of concurrent calls to one receiver
	Timeout     time.Duration   // time limit of a call
	Delays      []time.Duration // Delays[n] is the pause after a delivery's n-th failure; Delays[0] is 0
	Attempts    int             // maximum number of calls for a delivery; 0 for the number of Delays

	Allow        []netip.Prefix // address ranges that may be called although they are not public
	InsecureHTTP bool           // permit URLs that do not use TLS

	SecretKey Secret // Base64 keys that encrypt secrets; new secrets are encrypted with the first key; "" for the key in Data

	SecretGrace time.Duration // how long after a rotation calls are also signed with the previous secret
}

// defaultDelays returns the delays of the original system: twelve attempts
// within a week.
func defaultDelays() []time.Duration {
	delays := []time.Duration{0, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 60_540 * time.Second}
	for range 6 {
		delays = append(delays, day)
	}
	return delays
}

// pushKeySize is the size, in bytes, of a key that encrypts secrets.
const pushKeySize = 32

// Keys decodes the keys in SecretKey. It fails unless each key is the Base64 of
// 32 bytes. The error contains no key.
func (p *Push) Keys() ([][]byte, error) {
	var keys [][]byte
	for i, text := range strings.FieldsFunc(p.SecretKey.Reveal(), isSeparator) {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(key) != pushKeySize {
			return nil, fmt.Errorf("key %d: want the Base64 of %d bytes, such as openssl rand -base64 %d prints", i+1, pushKeySize, pushKeySize)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (c *Config) validatePush(fault faultFunc) {
	p := &c.Push
	if _, err := p.Keys(); err != nil {
		fault("push.secret-key", "%w", err)
	}
	if p.Concurrency > maxPushConcurrency {
		fault("push.concurrency", "want at most %d", maxPushConcurrency)
	}
	if len(p.Delays) > 0 && p.Delays[0] != 0 {
		fault("push.delays", "want 0 as the first time: a new delivery is called at once")
	}
	if p.Attempts > len(p.Delays) {
		fault("push.attempts", "push.delays has only %d delays; add some, or lower this", len(p.Delays))
	}
}

// maxPushConcurrency is the number of results that one settlement can store. It
// equals domain.MaxConcurrency.
const maxPushConcurrency = 64

func isSeparator(c rune) bool { return c == ' ' || c == ',' }

// A delaysValue is a list of durations. A number without a unit is in seconds.
type delaysValue []time.Duration

const (
	maxDelays = 64
	maxDelay  = 7 * day
)

func (v *delaysValue) String() string {
	texts := make([]string, len(*v))
	for i, d := range *v {
		texts[i] = d.String()
		for _, zero := range []string{"m0s", "h0m"} {
			if short, ok := strings.CutSuffix(texts[i], zero); ok {
				texts[i] = short + zero[:1]
			}
		}
	}
	return strings.Join(texts, " ")
}

func (v *delaysValue) Set(s string) error {
	var delays []time.Duration
	for _, text := range strings.FieldsFunc(s, isSeparator) {
		d, err := time.ParseDuration(text)
		if err != nil {
			d, err = time.ParseDuration(text + "s")
		}
		if err != nil || d < 0 || d > maxDelay {
			return fmt.Errorf("want times up to %v, such as 0 60 10m 1h", maxDelay)
		}
		delays = append(delays, d)
	}
	if len(delays) == 0 || len(delays) > maxDelays {
		return fmt.Errorf("want 1 to %d times, such as 0 60 10m 1h", maxDelays)
	}
	*v = delays
	return nil
}

// A prefixesValue is a list of address ranges.
type prefixesValue []netip.Prefix

func (v *prefixesValue) String() string {
	texts := make([]string, len(*v))
	for i, p := range *v {
		texts[i] = p.String()
	}
	return strings.Join(texts, " ")
}

func (v *prefixesValue) Set(s string) error {
	var prefixes []netip.Prefix
	for _, text := range strings.FieldsFunc(s, isSeparator) {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Addr().Is4In6() || p != p.Masked() {
			return errors.New("want ranges of addresses, such as 10.0.0.0/8 fd00::/8")
		}
		prefixes = append(prefixes, p)
	}
	*v = prefixes
	return nil
}

// A graceValue is how long a previous secret remains valid after a rotation.
type graceValue time.Duration

const maxGrace = 7 * day

func (v *graceValue) String() string { return daysText(time.Duration(*v)) }

func (v *graceValue) Set(s string) error {
	d, err := parseDays(strings.ToLower(strings.TrimSpace(s)))
	if err != nil || d < 0 || d > maxGrace {
		return fmt.Errorf("want a time of 0s to %s, such as 36h or 2d", daysText(maxGrace))
	}
	*v = graceValue(d)
	return nil
}
