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

// errNoExchange reports a client without an exchange.
var errNoExchange = errors.New("domainclient: no Options.Exchange; set it to the container that is shared with the hub")

// largestList is the limit for a list of ids: 20 times the list of the largest
// bundle.
const largestList = 16 << 20

// readIDs reads a list of ids.
func (x contentContainer) readIDs(ctx context.Context, list string) ([]uuid.UUID, error) {
	if x.container == nil {
		return nil, errNoExchange
	}
	resp, err := x.container.NewBlobClient(list).DownloadStream(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read the ids in %s: %w", list, err)
	}
	body := resp.NewRetryReader(ctx, nil)
	defer func() { _ = body.Close() }() // the body was only read
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

// Content is uploaded in blocks. Two blocks are in memory at a time.
const blockBytes = 4 << 20

// errEmpty is content that the hub would refuse.
var errEmpty = errors.New("the content is empty")

// putContent writes content to a blob, which it creates or replaces atomically,
// and returns its URI and size.
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

// A safeReader counts bytes, ends with its context, and turns panics into
// errors: a panic would free the uploader's memory while it is in use.
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
