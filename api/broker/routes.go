package broker

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/messagehub/messagehub/domain/broker"
)

// A Host is the server to which the routes of the broker are added.
type Host interface {
	// Handle returns a handler that calls h. If h returns an error, the handler responds with a
	// problem.
	Handle(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc

	// IsOperator reports whether token is an operator token. If the client has sent too many wrong
	// tokens, it fails with the error for the response.
	IsOperator(w http.ResponseWriter, r *http.Request, token string) (bool, error)

	// ReadBody reads a body of up to limit bytes. It reserves memory for the body until the caller
	// calls release, which is unnecessary after an error.
	ReadBody(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, release func(), err error)

	// ReserveAnswer acquires n bytes of the memory for responses. Each owner has a share of this
	// memory. It fails with Busy if it cannot acquire them in time.
	ReserveAnswer(ctx context.Context, owner string, n int64) (release func(), err error)

	// Note adds attributes to the request's log line.
	Note(ctx context.Context, attrs ...slog.Attr)
}

type edge struct {
	service *broker.Service
	host    Host
}

// Mount adds the routes of the broker to r. If service is nil, the caller must not pass requests to
// these routes.
func Mount(r chi.Router, service *broker.Service, host Host) {
	e := &edge{service, host}

	// Operators manage producers, channels and consumers.
	r.Put("/broker/producer/{producerId}", e.handle(e.put(e.producerOf)))
	r.Get("/broker/producer/{producerId}", e.handle(e.get(e.producerOf)))
	r.Get("/broker/producers", e.handle(e.listProducers))
	r.Put("/broker/channel/{channelId}", e.handle(e.put(e.channelOf)))
	r.Get("/broker/channel/{channelId}", e.handle(e.get(e.channelOf)))
	r.Get("/broker/channels", e.handle(e.listChannels))
	r.Put("/broker/channel/{channelId}/consumer/{consumerId}", e.handle(e.put(e.consumerOf)))
	r.Get("/broker/channel/{channelId}/consumer/{consumerId}", e.handle(e.get(e.consumerOf)))
	r.Get("/broker/channel/{channelId}/consumers", e.handle(e.listConsumers))

	// Producers send messages.
	r.Post("/broker/channel/{channelId}/broadcast", e.handle(e.broadcast))

	// Clients with the token of a channel read the state of its messages.
	r.Get("/broker/channel/{channelId}/messages", e.handle(e.listMessages))
	r.Get("/broker/channel/{channelId}/message/{messageId}", e.handle(e.getMessage))

	// Consumers and operators read dead letters, and restart the delivery of dead letters.
	r.Get("/broker/channel/{channelId}/consumer/{consumerId}/dlq", e.handle(e.listDeadLetters))
	r.Post("/broker/channel/{channelId}/message/{messageId}/re-trigger", e.handle(e.retriggerMessage))
	r.Post("/broker/channel/{channelId}/message/{messageId}/job/{jobId}/re-trigger", e.handle(e.retriggerJob))

	// The worker of package failsafe lists overdue jobs, in order to re-trigger them.
	r.Get("/broker/overdue", e.handle(e.listOverdue))

	// Consumers fetch messages, instead of or in addition to being called.
	r.Get("/broker/channel/{channelId}/consumer/{consumerId}/peek", e.handle(e.peek))
	r.Delete("/broker/channel/{channelId}/consumer/{consumerId}/dequeue/{bundleId}", e.handle(e.dequeue))
}

// A handler responds to a request that has the credentials creds. If it returns an error, it must
// not have written a response.
type handler func(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error

func (e *edge) handle(h handler) http.HandlerFunc {
	return e.host.Handle(func(w http.ResponseWriter, r *http.Request) error {
		creds, err := e.credentials(w, r)
		if err != nil {
			return err
		}
		return h(w, r, creds)
	})
}
