package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// Validate checks rules that involve several keys. Its error lists every fault,
// one per line: the key, its value, the source of the value, the fault, and the
// remedy.
func (c *Config) Validate() error {
	var faults []error
	fault := func(name, format string, args ...any) {
		shown := ""
		if k, ok := findKey(name); ok {
			shown = c.shownValue(k)
		}
		faults = append(faults, redactError(fmt.Errorf("%s = %q (%s): %w", name, shown, c.source(name), fmt.Errorf(format, args...))))
	}
	for _, k := range keys {
		if text := k.in(c).String(); !c.isSecretKey(k) && hasSecret(text) {
			faults = append(faults, secretFault(k.name, text, source{c.from[k.name].layer, c.source(k.name)}))
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	c.validateListen(fault)
	c.validateProduction(fault)
	c.validateOIDC(fault)
	c.validateConsole(fault)
	c.validateCosmos(fault)
	c.validateBus(fault)
	c.validateBlob(fault)
	c.validatePush(fault)
	c.validateBroker(fault)
	c.validateWatches(fault)
	if token := c.Admin.Token.Reveal(); token != "" && !IsToken(token) {
		fault("admin.token", "want %d to %d visible ASCII characters without blanks, such as openssl rand -hex 32 prints", minToken, maxToken)
	}
	if c.InMemory && c.from["data"].layer != byDefault && c.from["data"].layer >= c.from["in-memory"].layer {
		fault("data", "in-memory says that nothing is to be kept; remove one of the two")
	}
	if c.Limits.Payload > c.Limits.RequestBody {
		fault("limits.payload", "a request has at most limits.request-body = %s; raise that, or lower this", c.Limits.RequestBody)
	}
	c.validateShares(fault)
	if c.Limits.PayloadDepth > maxPayloadShape {
		fault("limits.payload-depth", "want at most %d; common JSON parsers refuse deeper bundles", maxPayloadShape)
	}
	if c.Limits.PayloadNumber > maxPayloadShape {
		fault("limits.payload-number", "want at most %d; common JSON parsers refuse longer numbers", maxPayloadShape)
	}
	if c.Limits.BusConnections < minBusConnections {
		fault("limits.bus-connections", "want at least %d; the hub needs a quarter of them for itself", minBusConnections)
	}
	if n := len(c.Groups().All()); n > maxGroups {
		fault("domains", "they make %d groups, of which there are at most %d; give several of them the same group", n, maxGroups)
	}
	return errors.Join(faults...)
}

// minBusConnections is twice the number of connections that the hub uses for
// events, requests and notices. With this limit, the hub can replace each
// connection before it closes the old one.
const minBusConnections = 32

// maxGroups is the maximum number of groups. A Freeze writes a record and the
// gates of all groups in one batch, and Cosmos DB limits a batch to 100
// operations.
const maxGroups = 99

// maxPayloadShape is Jackson's default limit for nesting depth and for the
// characters of a number, minus the two levels that a bundle adds around a
// payload.
const maxPayloadShape = 998

// validateShares checks that no limit for one client exceeds the total limit,
// and that the memory for bodies is sufficient for the largest body.
func (c *Config) validateShares(fault faultFunc) {
	l := &c.Limits
	if l.Bodies > 0 && l.Bodies < l.RequestBody {
		fault("limits.bodies", "a request may have limits.request-body = %s; raise this, or lower that", l.RequestBody)
	}
	if l.BodiesPerAddress > 0 && l.BodiesPerAddress < l.RequestBody {
		fault("limits.bodies-per-address", "a request may have limits.request-body = %s; raise this, or lower that", l.RequestBody)
	}
	if l.Bodies > 0 && l.BodiesPerAddress > l.Bodies {
		fault("limits.bodies-per-address", "all addresses together have limits.bodies = %s; raise that, or lower this", l.Bodies)
	}
	if l.AnswersPerActor > l.Answers {
		fault("limits.answers-per-actor", "all actors together have limits.answers = %s; raise that, or lower this", l.Answers)
	}
	if l.Connections > 0 && l.ConnectionsPerAddress > l.Connections {
		fault("limits.connections-per-address", "all addresses together have limits.connections = %d; raise that, or lower this", l.Connections)
	}
}

type faultFunc = func(name, format string, args ...any)

func (c *Config) validateListen(fault faultFunc) {
	c.validateListenAddress(fault, "listen", c.Listen, "actors are not authenticated, so every client that reaches this address may peek and dequeue for any actor")
	if c.HasOperatorListener() {
		c.validateListenAddress(fault, "admin-listen", c.AdminListen, "every client that reaches this address may read /metrics")
		if doPortsCollide(c.Listen, c.AdminListen) {
			fault("admin-listen", "listen is %s, which has this port, too; choose another port for one of them, or set both to the same address to have one listener", c.Listen)
		}
	}
	c.validateTLS(fault)
}

// doPortsCollide reports whether two listeners have the same port, and one of
// them listens on all addresses of the machine.
func doPortsCollide(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	isForAll := func(host string) bool {
		ip, err := netip.ParseAddr(host)
		return host == "" || err == nil && ip.IsUnspecified()
	}
	return errA == nil && errB == nil && portA == portB && portA != "0" && (isForAll(hostA) || isForAll(hostB))
}

// validateListenAddress checks the address of an HTTP listener. reason says why
// other machines must not reach it, unless the operator trusts all of them.
func (c *Config) validateListenAddress(fault faultFunc, name, address, reason string) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		fault(name, "want HOST:PORT, such as 127.0.0.1:8080")
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		fault(name, "want a port from 0 to 65535, got %q", port)
	} else if c.OIDC.IsOn() {
		c.validateTokenEncryption(fault, name, address)
	} else if err := RequireLoopback(address, reason, "give --insecure if every client that reaches it is trusted"); err != nil && !c.Insecure {
		fault(name, "%w", err)
	}
}

func (c *Config) validateTLS(fault faultFunc) {
	if (c.TLS.Certificate == "") != (c.TLS.Key == "") {
		fault("tls.key", "a certificate needs its key; set tls.cert and tls.key, or neither")
	}
	if c.TLS.ClientCA != "" && c.TLS.Certificate == "" {
		fault("tls.client-ca", "only a hub with TLS of its own sees certificates of clients; set tls.cert and tls.key, or remove this")
	}
	if c.TLS.Terminated && c.TLS.Certificate != "" {
		fault("tls.terminated", "the hub has TLS of its own because of tls.cert; remove one of the two")
	}
}

// validateTokenEncryption rejects an address if tokens sent to it could be read
// on the network.
func (c *Config) validateTokenEncryption(fault faultFunc, name, address string) {
	if c.TLS.Certificate != "" || c.TLS.Terminated || c.Insecure {
		return
	}
	if err := RequireLoopback(address, "tokens that are sent by plain HTTP can be read on the way", "set tls.cert and tls.key, or tls.terminated if a gateway in front of the hub has TLS"); err != nil {
		fault(name, "%w", err)
	}
}

const (
	minToken = 16 // a shorter token could be guessed
	maxToken = 200
)

// IsToken reports whether a text can be used as a token: it is valid in a
// header, and too long to be guessed.
func IsToken(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return minToken <= len(s) && len(s) <= maxToken
}

func (c *Config) validateCosmos(fault faultFunc) {
	if c.Embedded() {
		for _, name := range []string{"cosmos.key", "cosmos.database", "cosmos.consistency"} {
			if c.from[name].layer != byDefault {
				fault(name, "there is no cosmos.endpoint to use it with; add that, or remove this")
			}
		}
		return
	}
	u, err := url.Parse(c.Cosmos.Endpoint)
	switch {
	case err != nil, u.Host == "", u.Scheme != "https" && u.Scheme != "http":
		fault("cosmos.endpoint", "want a URL such as https://ACCOUNT.documents.azure.com:443/")
	case u.User != nil, u.RawQuery != "", strings.Trim(u.Path, "/") != "":
		fault("cosmos.endpoint", "want the address of the account alone, such as https://ACCOUNT.documents.azure.com:443/; a key goes to %s", envName("cosmos.key"))
	case u.Scheme == "http" && !loopback.IsDestination(u.Hostname()):
		fault("cosmos.endpoint", "http shows everything to everyone on the way; use https")
	case u.Scheme == "http" && c.Cosmos.Key == "":
		fault("cosmos.endpoint", "an emulator over http needs its key; set %s", envName("cosmos.key"))
	}
	if c.InMemory {
		fault("in-memory", "events would outlive their payloads, because cosmos.endpoint keeps the events; remove one of the two")
	}
}
