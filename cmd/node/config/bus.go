package config

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
	"github.com/messagehub/messagehub/domain"
)

// ServiceBus specifies the namespace through which the hub and the domains
// exchange messages, and the queues from which this node receives events. If
// Namespace and Connection are empty, the node runs an embedded bus.
type ServiceBus struct {
	Namespace  string // host name; the hub authenticates with azidentity's default credential
	Connection Secret // connection string with a shared access key; replaces Namespace
	FIFO       string // queue with a session per recipient; "" for none
	Plain      string // queue without sessions; "" for none
	Sessions   int    // maximum number of concurrent sessions of the queue FIFO
}

// Blob specifies the storage account for the hub's own content, and for the
// content that the hub exchanges with domains. Without Endpoint, the node
// stores this content in its data folder.
type Blob struct {
	Endpoint  string
	Key       Secret // for emulators; if "", azidentity's default credential is used
	Container string // common prefix of the names of the two blob containers
}

// ContentContainer returns the name of the blob container for the hub's own
// content.
func (b *Blob) ContentContainer() string { return b.Container + "-content" }

// ExchangeContainer returns the name of the blob container through which the
// hub and the domains exchange content.
func (b *Blob) ExchangeContainer() string { return b.Container + "-exchange" }

// EmbeddedBus reports whether the node runs an embedded bus.
func (c *Config) EmbeddedBus() bool {
	return c.ServiceBus.Namespace == "" && c.ServiceBus.Connection == ""
}

// EmbeddedBlob reports whether the node stores content in its data folder.
func (c *Config) EmbeddedBlob() bool { return c.Blob.Endpoint == "" }

// IsDefault reports whether a key has its default value because nothing sets
// the key.
func (c *Config) IsDefault(name string) bool { return c.from[name].layer == byDefault }

// Queues returns the names of the queues of each origin.
func (c *Config) Queues() map[domain.Origin]contract.Queues {
	queues := make(map[domain.Origin]contract.Queues)
	for _, origin := range c.Groups().Origins() {
		queues[origin] = contract.DefaultQueues(origin.String())
	}
	for _, d := range c.Domains {
		request := cmp.Or(d.Queues.Request, queues[d.Name].Request)
		queues[d.Name] = contract.Queues{
			Request: request,
			Reply:   cmp.Or(d.Queues.Reply, request+"-reply"),
			Dequeue: cmp.Or(d.Queues.Dequeue, request+"-dequeue"),
		}
	}
	return queues
}

// isNamespace reports whether a text is the host name of a Service Bus
// namespace. For an emulator, it may include a port.
func isNamespace(name string) bool {
	if host, port, err := net.SplitHostPort(name); err == nil {
		_, err := strconv.ParseUint(port, 10, 16)
		return err == nil && isNamespace(host)
	}
	return strings.Contains(name, ".") && !strings.ContainsAny(name, ":/ ")
}

func (c *Config) validateBus(fault faultFunc) {
	bus := &c.ServiceBus
	switch name := bus.Namespace; {
	case name != "" && bus.Connection != "":
		fault("servicebus.namespace", "servicebus.connection names a namespace too; remove one of the two")
	case name != "" && !isNamespace(name):
		fault("servicebus.namespace", "want the host name alone, such as NAME.servicebus.windows.net")
	}
	if c.InMemory && !c.EmbeddedBus() {
		fault("in-memory", "what is taken from the bus would be lost when the hub stops; remove one of the two")
	}
	c.validateListener(fault, "bus-listen", c.BusListen, "bus.key", c.Bus.Key, c.EmbeddedBus(), "servicebus.namespace or servicebus.connection")
	owner := map[string]string{strings.ToLower(bus.FIFO): "servicebus.fifo-queue"} // the setting that names each queue; keys are lower case, because the bus ignores case
	if bus.Plain != "" && strings.EqualFold(bus.Plain, bus.FIFO) {
		fault("servicebus.plain-queue", "it is servicebus.fifo-queue too; a queue has sessions, or it has none")
	}
	owner[strings.ToLower(bus.Plain)] = "servicebus.plain-queue"
	objects := strings.ToLower(c.Objects.Queue)
	if other, ok := owner[objects]; ok && objects != "" {
		fault("objects.queue", "it is %s too; give each its own", other)
	}
	owner[objects] = "objects.queue"
	for _, d := range c.Domains {
		ingest := strings.ToLower(d.Ingest)
		if ingest == "" {
			continue
		}
		if other, ok := owner[ingest]; ok {
			fault("domains", "queue %s is for the events of %s and for %s; give each its own", d.Ingest, d.Name, other)
		}
		owner[ingest] = "the events of " + d.Name.String()
	}
	for _, origin := range c.Groups().Origins() {
		q := c.Queues()[origin]
		for _, name := range []string{q.Request, q.Reply, q.Dequeue} {
			if other, ok := owner[strings.ToLower(name)]; ok {
				fault("domains", "queue %s is for %s and for %s; give each its own", name, other, origin)
			}
			owner[strings.ToLower(name)] = origin.String()
		}
	}
}

func (c *Config) validateBlob(fault faultFunc) {
	c.validateListener(fault, "blob-listen", c.BlobListen, "exchange.key", c.Exchange.Key, c.EmbeddedBlob(), "blob.endpoint")
	if c.EmbeddedBlob() {
		for _, name := range []string{"blob.key"} {
			if !c.IsDefault(name) {
				fault(name, "there is no blob.endpoint to use it with; add that, or remove this")
			}
		}
		return
	}
	u, err := url.Parse(c.Blob.Endpoint)
	switch {
	case err != nil, u.Host == "", u.Scheme != "https" && u.Scheme != "http":
		fault("blob.endpoint", "want a URL such as https://ACCOUNT.blob.core.windows.net/")
	case u.User != nil, u.RawQuery != "":
		fault("blob.endpoint", "want the address of the account alone, such as https://ACCOUNT.blob.core.windows.net/; a key goes to %s", envName("blob.key"))
	case u.Scheme == "http" && !loopback.IsDestination(u.Hostname()):
		fault("blob.endpoint", "http shows everything to everyone on the way; use https")
	case u.Scheme == "http" && c.Blob.Key == "":
		fault("blob.endpoint", "an emulator over http needs its key; set %s", envName("blob.key"))
	}
	if _, err := base64.StdEncoding.DecodeString(c.Blob.Key.Reveal()); err != nil {
		fault("blob.key", "want the key as the account tells it, in base64")
	}
	if c.InMemory {
		fault("in-memory", "payloads would outlive their events, because blob.endpoint keeps them; remove one of the two")
	}
}

// validateListener checks the address at which domains reach an embedded
// engine, and the engine's key. An address that other machines can reach
// requires TLS, and a key that is not the well-known one.
func (c *Config) validateListener(fault faultFunc, name, address, keyName string, key Secret, embedded bool, instead string) {
	if !embedded && !c.IsDefault(name) && address != "" {
		fault(name, "there is nothing of the hub's own behind it, because of %s; remove one of the two", instead)
	}
	if !embedded && key != "" {
		fault(keyName, "there is nothing of the hub's own to use it for, because of %s; remove one of the two", instead)
	}
	if decoded, err := base64.StdEncoding.DecodeString(key.Reveal()); key != "" && (err != nil || len(decoded) < minListenerKey) {
		fault(keyName, "want at least %d bytes in base64, such as openssl rand -base64 %d prints", minListenerKey, minListenerKey)
	}
	if address == "" || !embedded {
		return
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		fault(name, "want HOST:PORT, such as 127.0.0.1:5672, or nothing for none")
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		fault(name, "want a port from 0 to 65535, got %q", port)
		return
	}
	reason := ""
	switch {
	case key == "":
		reason = "its key is the well-known one"
	case c.TLS.Certificate == "":
		reason = "nothing is encrypted"
	default:
		return
	}
	if err := RequireLoopback(address, reason, "set "+keyName+", tls.cert and tls.key"); err != nil {
		fault(name, "%w", err)
	}
}

// minListenerKey is the minimum length of a key, in bytes. A shorter key could
// be guessed.
const minListenerKey = 32

var (
	queuePattern     = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,260}$`)
	containerPattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
)

// queueName parses the name of a queue, and stores it in at.
func queueName(at *string, text string) error {
	if !queuePattern.MatchString(text) {
		return fmt.Errorf("want the name of a queue, 1 to 260 characters of A-Z a-z 0-9 . _ - /, got %.64q", text)
	}
	*at = text
	return nil
}

// A queueValue is the name of a queue; "none" stands for no queue.
type queueValue string

const none = "none"

func (v *queueValue) String() string {
	if *v == "" {
		return none
	}
	return string(*v)
}

func (v *queueValue) Set(s string) error {
	if strings.EqualFold(s, none) {
		*v = ""
		return nil
	}
	return queueName((*string)(v), s)
}

// A listenerValue is the address of an optional listener; "" means no listener.
type listenerValue string

func (v *listenerValue) String() string     { return string(*v) }
func (v *listenerValue) Set(s string) error { *v = listenerValue(strings.TrimSpace(s)); return nil }

// A containerValue is the common prefix of the names of the blob containers.
type containerValue string

func (v *containerValue) String() string { return string(*v) }
func (v *containerValue) Set(s string) error {
	if len(s) < 3 || len(s) > 50 || !containerPattern.MatchString(s) {
		return errors.New("want 3 to 50 characters of a-z 0-9 and single - between them")
	}
	*v = containerValue(s)
	return nil
}
