package busclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// A Receiver is implemented by azservicebus.Receiver and azservicebus.SessionReceiver. Only one
// goroutine may use it at a time.
type Receiver interface {
	// ReceiveMessages waits for messages and returns up to limit of them.
	ReceiveMessages(ctx context.Context, limit int, o *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}

// ErrLinkLost reports that a receiver has lost its link, because the connection was lost or the
// lock of the session has expired.
var ErrLinkLost = errors.New("the link to the queue is lost")

// A PanicError contains the value with which Microsoft's client panicked while it decoded a
// message.
type PanicError struct{ Value any }

func (p *PanicError) Error() string { return fmt.Sprintf("the client panicked: %v", p.Value) }

// IsPanic reports whether err is a PanicError.
func IsPanic(err error) bool {
	_, is := errors.AsType[*PanicError](err)
	return is
}

// ReceiveOne returns the next message. It requests only one message, because a call for several
// messages may return the messages of a session in the wrong order. The client panics on properties
// of unexpected types, which any sender can set. After a [PanicError], the receiver must not be
// used again.
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
	case len(got) == 0: // the client has lost the link if it returns no messages and no error; another call would open a new link
		return nil, ErrLinkLost
	default:
		return got[0], nil
	}
}
