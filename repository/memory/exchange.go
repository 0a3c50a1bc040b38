package memory

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// An Exchange keeps what hub and domains share in a map. It is safe for concurrent
// use.
type Exchange struct{ *Content }

var _ repository.Exchange = (*Exchange)(nil)

// NewExchange returns an empty Exchange.
func NewExchange() *Exchange { return &Exchange{NewContent()} }

// exchangeURI is what the URIs of the one container begin with.
const exchangeURI = "https://memory.example/exchange/"

// Leave does what a domain does: it stores content under a name, in the place of
// what may be there, and returns its URI.
func (e *Exchange) Leave(name string, data []byte) (uri string) {
	e.keep(name, bytes.Clone(data))
	return exchangeURI + name
}

// Fetch implements [repository.Exchange]. What it opens never changes.
func (e *Exchange) Fetch(ctx context.Context, uri string) (io.ReadCloser, error) {
	name, err := exchangeName(uri)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	length := len(e.objects[name])
	e.mu.Unlock()
	return e.Open(ctx, repository.Section{Object: name, Length: int64(length)})
}

// Discard implements [repository.Exchange].
func (e *Exchange) Discard(ctx context.Context, uri string) error {
	name, err := exchangeName(uri)
	if err != nil {
		return err
	}
	return e.Delete(ctx, name)
}

func exchangeName(uri string) (string, error) {
	name, ours := strings.CutPrefix(uri, exchangeURI)
	if !ours {
		return "", domain.Errorf(domain.Invalid, "content uri: want one below %s", exchangeURI)
	}
	return name, repository.CheckObjectName(name)
}
