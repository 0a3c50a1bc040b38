package emulator

import (
	"encoding/base64"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// Validate rejects invalid options. It also rejects an address at which other
// machines could use the account without a secret key.
func (c *Cosmos) Validate() error {
	levels := []string{"", "Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"}
	hasOldReads := c.MaxStale > 0 || c.MaxLag > 0
	switch {
	case !slices.Contains(levels, c.Engine.Consistency):
		return fmt.Errorf("--consistency: want Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual, got %q", c.Engine.Consistency)
	case hasOldReads && c.Engine.Dir != "":
		return fmt.Errorf("--stale and --lag work in memory only; add --in-memory, or remove them")
	case hasOldReads && c.Engine.Consistency == "Strong":
		return fmt.Errorf("--stale and --lag: an account with --consistency Strong has no old reads; choose Session, or remove them")
	}
	for _, n := range []struct {
		flag  string
		value int64
	}{{"stale", int64(c.MaxStale)}, {"range-bytes", c.Engine.RangeBytes}, {"query-steps", c.Engine.QuerySteps}, {"query-memory", c.Engine.QueryMemory}} {
		if n.value < 0 {
			return fmt.Errorf("--%s: want a whole number of at least 0, got %d", n.flag, n.value)
		}
	}
	times := []duration{{"lag", c.MaxLag}, {"sweep", c.Sweep}}
	if l := c.Engine.Latency; l != nil {
		times = append(times, duration{"latency", l.Base}, duration{"latency-per-kb", l.PerKB}, duration{"latency-jitter", l.Jitter})
	}
	for _, d := range times {
		if d.value < 0 {
			return fmt.Errorf("--%s: want a time such as 2ms, got %s", d.flag, d.value)
		}
	}
	if c.Endpoint.Advertise != "" {
		if err := validateAddress("advertise", c.Endpoint.Advertise); err != nil {
			return err
		}
	}
	if err := validateKey(c.Engine.Key); err != nil {
		return err
	}
	reason := ""
	if c.hasKnownKey() {
		reason = knownKey
	}
	return c.checkListen(c.Listen, reason)
}

// A duration is a flag that sets a time, with its value.
type duration struct {
	flag  string
	value time.Duration
}

var containerName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Validate rejects invalid options. It also rejects an address at which other
// machines could use the account without a secret key.
func (b *Blob) Validate() error {
	const least, limit = 3, 63
	for _, name := range b.Engine.Containers {
		if len(name) < least || len(name) > limit || !containerName.MatchString(name) {
			return fmt.Errorf("--container: want %d to %d characters of a-z 0-9, with single dashes between them, got %q", least, limit, name)
		}
	}
	if err := validateKey(b.Engine.Key); err != nil {
		return err
	}
	return b.checkListen(b.Listen, b.openReason())
}

// Validate rejects invalid options. It also rejects an address at which other
// machines could use the namespace without a secret key.
func (b *ServiceBus) Validate() error {
	if len(b.Listen) == 0 {
		return fmt.Errorf("--listen: want HOST:PORT, such as 127.0.0.1:5672")
	}
	for _, address := range b.Listen {
		if err := b.checkListen(address, b.openReason()); err != nil {
			return err
		}
	}
	names := []string{embedded.WellKnownKeyName}
	for _, key := range b.Engine.Keys {
		if slices.Contains(names, key.Name) {
			return fmt.Errorf("--add-key: two keys have the name %s; rename one of them", key.Name)
		}
		names = append(names, key.Name)
	}
	entities, err := b.readEntities()
	if err != nil || b.Entities == "" {
		return err
	}
	trial, err := embedded.Open(embedded.Options{Entities: entities}) // opened in memory, so that the engine validates the entities
	if err != nil {
		return fmt.Errorf("--entities: %s: %w", b.Entities, err)
	}
	return trial.Close()
}

// checkListen rejects a text that is not HOST:PORT, and an address that
// checkAddress rejects.
func (o *Options) checkListen(address, reason string) error {
	if err := validateAddress("listen", address); err != nil {
		return err
	}
	return o.checkAddress(address, reason)
}

// validateAddress checks that the value of a flag is HOST:PORT.
func validateAddress(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--%s: want HOST:PORT, such as 127.0.0.1:8081, got %q", flag, address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("--%s: want a port from 0 to 65535, got %q", flag, port)
	}
	return nil
}

// validateKey rejects a key that is not base64. Its error does not contain the
// key.
func validateKey(key string) error {
	if _, err := base64.StdEncoding.DecodeString(key); err != nil {
		return fmt.Errorf("--key, --key-file or %s: want a key in base64, such as openssl rand -base64 32 prints", KeyVariable)
	}
	return nil
}
