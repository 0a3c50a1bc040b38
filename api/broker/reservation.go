package broker

import "context"

const (
	// payloadCopies is the maximum number of copies of a payload that are in memory while a
	// response is sent: the stored bytes, the text, and the JSON, which is up to twice as large.
	payloadCopies = 4
	answerMemory  = 64 << 10 // memory of a response in addition to its payloads, in bytes
)

// A reservation reserves memory for a response with payloads, until close is called.
type reservation struct {
	host    Host
	owner   string
	release func()
}

func (e *edge) newReservation(owner string) *reservation {
	return &reservation{e.host, owner, func() {}}
}

// reserve acquires memory for payloads of the given total size. It is the Reserve function of the
// use cases.
func (r *reservation) reserve(ctx context.Context, bytes int64) error {
	release, err := r.host.ReserveAnswer(ctx, r.owner, answerMemory+payloadCopies*bytes)
	if err == nil {
		r.release()
		r.release = release
	}
	return err
}

func (r *reservation) close() { r.release() }
