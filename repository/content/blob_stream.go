package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/messagehub/messagehub/domain"
)

// A blobStream reads a part of one version of a blob. If a connection breaks, or transfers no data for
// too long, the stream continues at the same position with another connection. It does not buffer data.
//
// A blobStream replaces azblob's RetryReader, which recognizes only some errors of a broken connection
// and does not limit the retries of a whole stream.
type blobStream struct {
	client  *blob.Client
	etag    *azcore.ETag
	at, end int64
	body    io.ReadCloser // nil: no connection is open

	ctx     context.Context //nolint:containedctx // lasts until Close, longer than the context of Open
	cancel  context.CancelFunc
	empty   int   // number of consecutive connections that broke before they transferred data
	failure error // nil, or the error with which the stream ended
}

const maxEmptyConnections = 3

// newStream opens the part of a blob that begins at from. The part has length bytes; with
// blob.CountToEnd, it extends to the end of the blob. The stream may be read after ctx has ended.
func newStream(ctx context.Context, client *blob.Client, from, length int64) (_ *blobStream, size int64, err error) {
	s := &blobStream{client: client, at: from}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, s.cancel)
	got, err := client.DownloadStream(s.ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: from, Count: length}}) //nolint:contextcheck // s.ctx ends with ctx until the stream is open
	if !stop() && err == nil {
		err = ctx.Err()
		_ = got.Body.Close() // no data was read, so an error does not matter
	}
	if err != nil {
		s.cancel()
		return nil, 0, classifyBlobError(ctx, err)
	}
	s.body, s.etag = got.Body, got.ETag
	if size, err = sizeOf(got); err == nil && got.ContentEncoding != nil && *got.ContentEncoding != "" {
		err = domain.Errorf(domain.Invalid, "the object has the content encoding %.40q; store content without an encoding", *got.ContentEncoding)
	}
	if err != nil {
		return nil, 0, errors.Join(err, s.Close())
	}
	s.end = size
	if length != blob.CountToEnd {
		s.end = min(size, from+length)
	}
	return s, size, nil
}

// sizeOf returns the size of the whole blob from the response to a request for a part.
func sizeOf(got blob.DownloadStreamResponse) (int64, error) {
	if got.ContentRange == nil {
		if got.ContentLength == nil {
			return 0, errors.New("the account returned content without its length")
		}
		return *got.ContentLength, nil
	}
	_, total, _ := strings.Cut(*got.ContentRange, "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the account returned an invalid Content-Range %.60q", *got.ContentRange)
	}
	return size, nil
}

// Read implements [io.Reader].
func (s *blobStream) Read(p []byte) (int, error) {
	for s.failure == nil {
		if s.at == s.end {
			return 0, io.EOF
		}
		if s.body == nil {
			if s.failure = s.resumeReading(); s.failure != nil {
				break
			}
		}
		n, err := s.body.Read(p[:min(int64(len(p)), s.end-s.at)])
		s.at += int64(n)
		switch {
		case n > 0:
			s.empty = 0
			return n, nil // the next Read returns err again
		case err != nil:
			s.failure = s.dropConnection(err)
		case len(p) == 0 || err == nil:
			return 0, nil
		}
	}
	return 0, s.failure
}

// dropConnection closes a broken connection. It returns an error if the stream must end.
func (s *blobStream) dropConnection(err error) error {
	_ = s.body.Close() // the connection is broken, so its error adds nothing to err
	s.body = nil
	if s.empty++; s.empty < maxEmptyConnections {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return domain.Errorf(domain.Unavailable, "the connection broke %d times at byte %d: %v", s.empty, s.at, err)
}

// resumeReading opens another connection for the remaining bytes of the same version.
func (s *blobStream) resumeReading() error {
	got, err := s.client.DownloadStream(s.ctx, &blob.DownloadStreamOptions{
		Range:            blob.HTTPRange{Offset: s.at, Count: s.end - s.at},
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: s.etag}},
	})
	if err == nil {
		s.body = got.Body
		return nil
	}
	err = classifyBlobError(s.ctx, err)
	if domain.KindOf(err) == domain.NotFound {
		return domain.Errorf(domain.Damaged, "the object was deleted while it was read: %w", err)
	}
	return err
}

// Close implements [io.Closer].
func (s *blobStream) Close() error {
	s.cancel()
	if s.failure == nil {
		s.failure = errors.New("the content is closed")
	}
	if s.body != nil {
		_ = s.body.Close() // the caller needs no more data, so the error does not matter
		s.body = nil
	}
	return nil
}
