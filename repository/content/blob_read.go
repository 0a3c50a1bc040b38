package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Open implements [repository.Content].
func (b *Blobs) Open(ctx context.Context, s repository.Section) (io.ReadCloser, error) {
	if err := repository.CheckObjectName(s.Object); err != nil {
		return nil, err
	}
	if s.Offset < 0 || s.Length < 0 {
		return nil, domain.Errorf(domain.Invalid, "open %s: offset %d and length %d must not be negative", s.Object, s.Offset, s.Length)
	}
	r, err := b.openSection(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.Object, err)
	}
	return r, nil
}

func (b *Blobs) openSection(ctx context.Context, s repository.Section) (io.ReadCloser, error) {
	client := b.container.NewBlobClient(s.Object)
	if s.Length == 0 || s.Length > math.MaxInt64-s.Offset { // a range request cannot represent the section
		properties, err := client.GetProperties(ctx, nil)
		if err != nil {
			return nil, classifyBlobError(ctx, err)
		}
		if properties.ContentLength == nil {
			return nil, errors.New("the account returned properties without a length")
		}
		return emptyReader{}, checkSize(s, *properties.ContentLength)
	}
	r, size, err := newStream(ctx, client, s.Offset, s.Length)
	if domain.KindOf(err) == domain.Damaged {
		return nil, fmt.Errorf("want %d bytes from %d, but the object ends before: %w", s.Length, s.Offset, err)
	}
	if err != nil {
		return nil, err
	}
	if err := checkSize(s, size); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// checkSize returns a Damaged error if an object of size bytes ends before the end of s.
func checkSize(s repository.Section, size int64) error {
	if s.Offset > size || s.Length > size-s.Offset {
		return domain.Errorf(domain.Damaged, "want %d bytes from %d, but the object has only %d", s.Length, s.Offset, size)
	}
	return nil
}

// An emptyReader reads an empty section.
type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, io.EOF }

func (emptyReader) Close() error { return nil }

// Name implements [repository.Exchange].
func (b *Blobs) Name(uri string) (string, error) { return parseBlobURI(b.locations, b.anyHost, uri) }

// Fetch implements [repository.Exchange].
func (b *Blobs) Fetch(ctx context.Context, uri string) (io.ReadCloser, error) {
	name, err := parseBlobURI(b.locations, b.anyHost, uri)
	if err != nil {
		return nil, err
	}
	r, _, err := newStream(ctx, b.container.NewBlobClient(name), 0, blob.CountToEnd)
	if err != nil {
		return nil, fmt.Errorf("fetch %.300q: %w", name, err)
	}
	return r, nil
}

// Discard implements [repository.Exchange].
func (b *Blobs) Discard(ctx context.Context, uri string) error {
	name, err := parseBlobURI(b.locations, b.anyHost, uri)
	if err == nil {
		err = b.removeBlob(ctx, name)
	}
	return err
}

// Delete implements [repository.Content].
func (b *Blobs) Delete(ctx context.Context, name string) error {
	if err := repository.CheckObjectName(name); err != nil {
		return err
	}
	return b.removeBlob(ctx, name)
}

// removeBlob deletes a blob. A missing blob is not an error: the client may repeat a request that has
// already deleted the blob.
func (b *Blobs) removeBlob(ctx context.Context, name string) error {
	with := blob.DeleteSnapshotsOptionTypeInclude
	sending, lost := observeAttempts(ctx)
	_, err := b.container.NewBlobClient(name).Delete(sending, &blob.DeleteOptions{DeleteSnapshots: &with})
	if err == nil || bloberror.HasCode(err, bloberror.BlobNotFound) {
		return nil
	}
	err = classifyBlobError(ctx, err)
	if *lost && ctx.Err() == nil {
		return domain.Errorf(domain.Uncertain, "delete %.300q: %w", name, err)
	}
	return fmt.Errorf("delete %.300q: %w", name, err)
}

// DeleteFolder implements [repository.Content].
func (b *Blobs) DeleteFolder(ctx context.Context, folder string) error {
	if err := repository.CheckObjectName(folder); err != nil {
		return err
	}
	const maxDeletions = 8 // limit for concurrent deletions
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(maxDeletions)
	prefix := folder + "/"
	pages := b.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix})
	var listing error
	for pages.More() && inner.Err() == nil && listing == nil {
		page, err := pages.NextPage(inner)
		if err != nil {
			listing = classifyBlobError(ctx, err)
			break
		}
		for _, item := range page.Segment.BlobItems {
			group.Go(func() error { return b.removeBlob(inner, *item.Name) })
		}
	}
	if err := errors.Join(group.Wait(), listing); err != nil {
		return fmt.Errorf("delete folder %s: %w", folder, err)
	}
	return ctx.Err()
}
