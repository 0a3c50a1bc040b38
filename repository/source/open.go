package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Open implements [repository.Source]. The time limit of a call also applies to each read.
func (s Stores) Open(ctx context.Context, name domain.ObjectName) (io.ReadCloser, error) {
	store := s.storeOf(name.Bucket())
	if store == nil {
		return nil, fmt.Errorf("read bucket %s: %w", name.Bucket(), repository.ErrNoStore)
	}
	c := &objectContent{caller: ctx}
	c.ctx, c.cancel = context.WithCancel(ctx)
	err := c.callWithin(func() (err error) {
		c.r, err = store.Open(c.ctx, name)
		return err
	})
	if err != nil {
		c.cancel()
		return nil, fmt.Errorf("read bucket %s: %w", name.Bucket(), err)
	}
	return c, nil
}

// An objectContent is the content of an object. Its Read fails if the store sends no data within the
// time limit.
type objectContent struct {
	r      io.ReadCloser
	caller context.Context //nolint:containedctx // the context of Open
	ctx    context.Context //nolint:containedctx // the context of r, until Close
	cancel context.CancelFunc
}

// callWithin calls the store, unless the caller's context has ended, and returns an error with its
// domain.Kind.
func (c *objectContent) callWithin(call func() error) error {
	if err := c.caller.Err(); err != nil {
		return err
	}
	timer := time.AfterFunc(callTimeout, c.cancel)
	err := call()
	timer.Stop()
	_, isClassified := errors.AsType[*domain.Error](err)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return err
	case c.caller.Err() != nil:
		return c.caller.Err()
	case c.ctx.Err() != nil:
		return domain.Errorf(domain.Unavailable, "the store sent nothing for %s", callTimeout)
	case isClassified:
		return err
	default:
		// err must not be wrapped: after a broken connection, it may be io.ErrUnexpectedEOF, which a
		// reader of a compressed file would interpret as a damaged file.
		return domain.Errorf(domain.Unavailable, "the content ended early: %v", err)
	}
}

// Read implements [io.Reader].
func (c *objectContent) Read(p []byte) (n int, err error) {
	err = c.callWithin(func() (err error) {
		n, err = c.r.Read(p)
		return err
	})
	return n, err
}

// Close implements [io.Closer].
func (c *objectContent) Close() error {
	c.cancel()
	return c.r.Close()
}
