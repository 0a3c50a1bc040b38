package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// A busLimits contains the flags that limit what the emulator's clients may
// use.
type busLimits struct {
	connections, links, sessions int
	buffered                     string
	tokenTimeout                 time.Duration
}

func (l *busLimits) addFlags(f *pflag.FlagSet) {
	f.IntVar(&l.connections, "max-connections", 1000, "maximum number of connections, `N`; above it, a new one replaces the oldest without a valid token")
	f.IntVar(&l.links, "max-links", 65536, "maximum number of AMQP links of all connections, `N`")
	f.IntVar(&l.sessions, "max-sessions", 65536, "maximum number of AMQP sessions of all connections, `N`")
	f.StringVar(&l.buffered, "max-buffered", "128MB", "`SIZE` that all connections together may buffer; above it, each may buffer less")
	f.DurationVar(&l.tokenTimeout, "token-timeout", 10*time.Second, "`TIME` within which a connection must present a valid token")
}

// apply validates the limits, and sets them in the options.
func (l *busLimits) apply(o *embedded.Options) error {
	for _, n := range []struct {
		flag  string
		value int
	}{{"max-connections", l.connections}, {"max-links", l.links}, {"max-sessions", l.sessions}} {
		if n.value < 1 {
			return fmt.Errorf("--%s %d: want a whole number of at least 1", n.flag, n.value)
		}
	}
	buffered, err := config.ParseSize(l.buffered)
	if err != nil {
		return fmt.Errorf("--max-buffered %q: %w", l.buffered, err)
	}
	if l.tokenTimeout <= 0 {
		return fmt.Errorf("--token-timeout %v: want more than 0s, such as 10s", l.tokenTimeout)
	}
	o.MaxConnections, o.MaxNetworkConnections = l.connections, l.connections // both limits are equal, because this process opens no connection itself
	o.MaxLinks, o.MaxSessions, o.MaxBuffered, o.TokenTimeout = l.links, l.sessions, int64(buffered), l.tokenTimeout
	return nil
}
