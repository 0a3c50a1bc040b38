package domainclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"

	"github.com/messagehub/messagehub/api/servicebus/contract"
)

// A contentContainer is the container that the hub shares with the domain.
type contentContainer struct{ container *container.Client }

// errNoExchange reports a client without Options.Exchange.
var errNoExchange = errors.New("domainclient: no Options.Exchange; set it to the container that is shared with the hub")

// largestList is the maximum size of a list of event ids in bytes, 20 times the size for the
// largest bundle.
const largestList = 16 << 20

// readIDs returns the event ids in the blob called list.
func (x contentContainer) readIDs(ctx context.Context, list string) ([]uuid.UUID, error) {
	if x.container == nil {
		return nil, errNoExchange
	}
	resp, err := x.container.NewBlobClient(list).DownloadStream(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read the ids in %s: %w", list, err)
	}
	body := resp.NewRetryReader(ctx, nil)
	defer func() { _ = body.Close() }() // an error from closing a body after reading is harmless
	text, err := io.ReadAll(io.LimitReader(body, largestList+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the ids in %s: %w", list, err)
	case len(text) > largestList:
		return nil, fmt.Errorf("read the ids in %s: more than %d MB, too large for a list of ids", list, largestList>>20)
	}
	ids, err := contract.DecodeIDs(text)
	if err != nil {
		return nil, fmt.Errorf("read the ids in %s: %w", list, err)
	}
	return ids, nil
}

// blockBytes is the size of the blocks in which content is uploaded. Two blocks are in memory at
// the same time.
const blockBytes = 4 << 20

// errEmpty reports empty content, which the hub would refuse.
var errEmpty = errors.New("the content is empty")

// putContent writes content to a blob, which it creates or replaces atomically. It returns the URI
// and the size of the blob.
func (x contentContainer) putContent(ctx context.Context, name, mediaType string, content io.Reader) (uri string, size int64, err error) {
	safe := &safeReader{ctx: ctx, from: content}
	buffered := bufio.NewReader(safe)
	if _, err := buffered.Peek(1); errors.Is(err, io.EOF) {
		return "", 0, errEmpty
	}
	client := x.container.NewBlockBlobClient(name)
	_, err = client.UploadStream(ctx, buffered, &blockblob.UploadStreamOptions{
		BlockSize: blockBytes, Concurrency: 2, HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &mediaType},
	})
	if err != nil {
		return "", 0, fmt.Errorf("write %s: %w", name, err)
	}
	at, err := url.Parse(client.URL())
	if err != nil {
		return "", 0, err
	}
	at.RawQuery = "" // the URI must not contain a signature
	return at.String(), safe.size, nil
}

// A safeReader counts the bytes that it reads, fails when its context ends, and turns panics into
// errors. A panic during an upload would free memory that the uploader still uses.
type safeReader struct {
	ctx  context.Context //nolint:containedctx // the error of the upload
	from io.Reader
	size int64
}

func (r *safeReader) Read(p []byte) (n int, err error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	err = recoverPanic(func() error {
		n, err = r.from.Read(p)
		return err
	})
	r.size += int64(n)
	return n, err
}
