package broker

import "context"

const (
	// payloadCopies is how many copies of a payload are in memory while it is
	// answered: as it was read, as text, and as JSON, which takes up to twice
	// as much.
	payloadCopies = 4
	answerMemory  = 64 << 10 // further bytes of an answer
)

// A reservation is the memory of an answer with payloads. It is held until
// close.
type reservation struct {
	host    Host
	owner   string
	release func()
}

func (e *edge) newReservation(owner string) *reservation {
	return &reservation{e.host, owner, func() {}}
}

// reserve acquires memory for payloads with a total size. The use cases call
// it as their Reserve function.
func (r *reservation) reserve(ctx context.Context, bytes int64) error {
	release, err := r.host.ReserveAnswer(ctx, r.owner, answerMemory+payloadCopies*bytes)
	if err == nil {
		r.release()
		r.release = release
	}
	return err
}

func (r *reservation) close() { r.release() }
