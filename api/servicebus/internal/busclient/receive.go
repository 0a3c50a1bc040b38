package busclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// A Receiver is either receiver of the client. Two goroutines must not use it
// at the same time.
type Receiver interface {
	// ReceiveMessages waits for messages and returns up to limit of them.
	ReceiveMessages(ctx context.Context, limit int, o *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}

// ErrLinkLost reports that a receiver has lost its link: the connection was dropped, or
// the lock of the session has ended.
var ErrLinkLost = errors.New("the link to the queue is lost")

// A PanicError has the value with which the client panicked when it read a
// message.
type PanicError struct{ Value any }

func (p *PanicError) Error() string { return fmt.Sprintf("the client panicked: %v", p.Value) }

// IsPanic reports whether err is a PanicError.
func IsPanic(err error) bool {
	_, is := errors.AsType[*PanicError](err)
	return is
}

// ReceiveOne returns the next message. It asks for one at a time: asked for more, the
// client may return the messages of a session in the wrong order. The client panics on
// properties of certain types, which any sender can set; a receiver that returned a
// [PanicError] must not be used again.
func ReceiveOne(ctx context.Context, r Receiver) (_ *azservicebus.ReceivedMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v}
		}
	}()
	got, err := r.ReceiveMessages(ctx, 1, nil)
	switch {
	case err != nil:
		return nil, err
	case len(got) == 0: // the client reports in this way that it has lost the link, and would open another
		return nil, ErrLinkLost
	default:
		return got[0], nil
	}
}
