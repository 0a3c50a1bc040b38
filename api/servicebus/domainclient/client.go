package domainclient

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"

	"github.com/messagehub/messagehub/api/servicebus/contract"
)

// A Connect creates a client of the Service Bus namespace. It is called once for each task: when a
// receiver fails permanently, Microsoft's client closes its whole connection, which must not affect
// other tasks. The client must be allowed at least one retry, because it replaces a lost connection
// only when it retries.
type Connect func() (*azservicebus.Client, error)

// ConnectionString connects with a connection string. The connection string of an embedded bus
// without TLS ends in UseDevelopmentEmulator=true.
func ConnectionString(text string) Connect { return ConnectionStringWithTLS(text, nil) }

// ConnectionStringWithTLS is like ConnectionString, but uses secured as the TLS configuration. Use it
// if the system does not trust the certificate authority of the namespace, or if the namespace
// requires a client certificate. The Endpoint may contain a port.
func ConnectionStringWithTLS(text string, secured *tls.Config) Connect {
	return func() (*azservicebus.Client, error) {
		text, endpoint := splitPort(text)
		return azservicebus.NewClientFromConnectionString(text, &azservicebus.ClientOptions{RetryOptions: shortRetries, TLSConfig: secured, CustomEndpoint: endpoint})
	}
}

// splitPort removes the port from the Endpoint of a connection string, and returns it in endpoint
// as HOST:PORT. endpoint is "" if the Endpoint has no port. Microsoft's client would treat the port
// as a part of the host name, except for an emulator without TLS.
func splitPort(text string) (connection, endpoint string) {
	parts := strings.Split(text, ";")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		switch {
		case strings.EqualFold(strings.TrimSpace(name), "UseDevelopmentEmulator") && strings.EqualFold(strings.TrimSpace(value), "true"):
			return text, ""
		case !strings.EqualFold(strings.TrimSpace(name), "Endpoint"):
			continue
		}
		address := strings.Trim(strings.TrimPrefix(strings.TrimSpace(value), "sb://"), "/")
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return text, ""
		}
		parts[i], endpoint = name+"=sb://"+host+"/", address
	}
	return strings.Join(parts, ";"), endpoint
}

// shortRetries are the retries inside Microsoft's client. They are few, because this package
// retries failed calls itself and logs each retry.
var shortRetries = azservicebus.RetryOptions{MaxRetries: 2, RetryDelay: 250 * time.Millisecond, MaxRetryDelay: 2 * time.Second}

// Options identify a domain and configure its connections to the hub.
type Options struct {
	// Origin is the name of the domain in the hub, such as Charges. An event can override it.
	Origin string

	// Connect creates clients of the namespace. Required.
	Connect Connect

	// Exchange is the container shared with the hub, named messagehub-exchange. Serve and EventIDs
	// require it.
	Exchange *container.Client

	// Form is the encoding of events that are sent. Default: Protobuf.
	Form Form

	// EventsPerMessage is the maximum number of events of one recipient in a
	// JSON message. Default: 1.
	EventsPerMessage int

	// RequestsAtOnce is the maximum number of requests that Serve handles concurrently. Default:
	// 16.
	RequestsAtOnce int

	// Events is the queue to which events are sent. Default: dataavailable-fifo.
	Events string

	// Queues are the other queues of the domain. Default: the queues named after Origin.
	Queues contract.Queues

	// Answered, if not nil, is called with each reply that Serve has sent. It must be fast and safe
	// for concurrent use.
	Answered func(Answer)

	// Logger logs failures that are retried. Default: no log.
	Logger *slog.Logger

	// Now returns the time, and Random is the source of random ids and pauses. Both must be safe
	// for concurrent use. Default: the system clock and crypto/rand.
	Now    func() time.Time
	Random io.Reader
}

// A Client acts for one domain. It is safe for concurrent use.
type Client struct {
	o      Options
	events *senders
}

// New returns a Client without connecting.
func New(o Options) (*Client, error) {
	if o.Connect == nil {
		return nil, errors.New("domainclient: no Options.Connect; use ConnectionString")
	}
	if o.Queues == (contract.Queues{}) && o.Origin != "" {
		o.Queues = contract.DefaultQueues(o.Origin)
	}
	o.Events = cmp.Or(o.Events, contract.DataAvailableFIFO)
	o.EventsPerMessage = max(o.EventsPerMessage, 1)
	o.RequestsAtOnce = cmp.Or(o.RequestsAtOnce, 16)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Random = cmp.Or(o.Random, rand.Reader)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Client{o: o, events: newSenders(&o, o.Events)}, nil
}

// Close closes the connection that Send uses. Serve and Notices close their own connections.
func (c *Client) Close(ctx context.Context) error { return c.events.close(ctx) }

// newID returns a random id for a message.
func (c *Client) newID() (uuid.UUID, error) { return uuid.NewRandomFromReader(c.o.Random) }
