package content

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	blockSize      = 4 << 20          // bytes; with blocks of this size, Azure reaches its full throughput
	maxInFlight    = 2                // limit for the blocks of an object that are sent while the next block is read
	resolveTimeout = 20 * time.Second // timeout for resolving an unknown outcome
)

// blocks is a pool of buffers of blockSize bytes.
var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// Put implements [repository.Content]. An object above blockSize is first staged in blocks, which are
// not visible. One request then creates the object, on condition that it does not exist. If the outcome
// of this request is unknown, Put fails with Uncertain: the object may become visible later.
func (b *Blobs) Put(ctx context.Context, name string, r io.Reader) error {
	if err := repository.CheckObjectName(name); err != nil {
		return err
	}
	u := &upload{client: b.container.NewBlockBlobClient(name), id: rand.Text(), source: contextReader{ctx, r}}
	if err := u.sendBlob(ctx); err != nil {
		return fmt.Errorf("put %s: %w", name, err)
	}
	return nil
}

// An upload is one call of Put. The upload's id is stored with the object. If the response does not
// show who created the object, Put compares this id with the id of the stored object.
type upload struct {
	client *blockblob.Client
	id     string
	source io.Reader
	staged []string // ids of staged blocks
}

func (u *upload) sendBlob(ctx context.Context) error {
	first := blocks.Get().(*[blockSize]byte)
	n, more, err := fillBuffer(u.source, first[:])
	if err != nil {
		blocks.Put(first)
		return err
	}
	if more {
		if err := u.stageAll(ctx, first); err != nil {
			return err
		}
		return u.commitBlob(ctx, u.commitBlocks)
	}
	defer blocks.Put(first)
	return u.commitBlob(ctx, func(ctx context.Context) error { return u.commitWhole(ctx, first[:n]) })
}

// fillBuffer reads until p is full or r ends. If p is full, more is true: r may have more bytes. It
// replaces io.ReadFull, which returns io.ErrUnexpectedEOF at the end of r: from r, this error means a
// broken connection.
func fillBuffer(r io.Reader, p []byte) (n int, more bool, err error) {
	for n < len(p) {
		k, err := r.Read(p[n:])
		n += k
		switch {
		case err == io.EOF:
			return n, n == len(p), nil
		case err != nil:
			return n, false, err
		}
	}
	return n, true, nil
}

// stageAll stages the source in blocks. first contains the first block, which was already read. When
// stageAll returns, no block is in flight.
func (u *upload) stageAll(outer context.Context, first *[blockSize]byte) error {
	group, ctx := errgroup.WithContext(outer)
	group.SetLimit(maxInFlight)
	stage := func(buffer *[blockSize]byte, n int) {
		block := u.nextBlock()
		group.Go(func() error {
			defer blocks.Put(buffer)
			_, err := u.client.StageBlock(ctx, block, streaming.NopCloser(bytes.NewReader(buffer[:n])), nil)
			return classifyBlobError(outer, err)
		})
	}
	stage(first, blockSize)
	for more := true; more && ctx.Err() == nil; {
		buffer := blocks.Get().(*[blockSize]byte)
		var n int
		var err error
		n, more, err = fillBuffer(u.source, buffer[:])
		if n == 0 || err != nil {
			blocks.Put(buffer)
			return errors.Join(err, group.Wait())
		}
		stage(buffer, n)
	}
	return group.Wait()
}

// nextBlock returns the id of the next block. All ids have the same length.
func (u *upload) nextBlock() string {
	id := binary.BigEndian.AppendUint32([]byte(u.id), uint32(len(u.staged))) //nolint:gosec // the number of blocks is far below the limit
	u.staged = append(u.staged, base64.StdEncoding.EncodeToString(id))
	return u.staged[len(u.staged)-1]
}

// ifAbsent returns the condition of the request that creates the object: the object does not exist.
func (u *upload) ifAbsent() *blob.AccessConditions {
	none := azcore.ETagAny
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &none}}
}

const idName = "putid" // name of the metadata entry that contains the id of the Put

func (u *upload) blobMetadata() map[string]*string { return map[string]*string{idName: &u.id} }

func (u *upload) commitWhole(ctx context.Context, data []byte) error {
	_, err := u.client.Upload(ctx, streaming.NopCloser(bytes.NewReader(data)),
		&blockblob.UploadOptions{Metadata: u.blobMetadata(), AccessConditions: u.ifAbsent()})
	return err
}

func (u *upload) commitBlocks(ctx context.Context) error {
	_, err := u.client.CommitBlockList(ctx, u.staged,
		&blockblob.CommitBlockListOptions{Metadata: u.blobMetadata(), AccessConditions: u.ifAbsent()})
	return err
}

// commitBlob sends the request that creates the object. If the first attempt of the request creates the
// object without a response, a further attempt fails, because the object exists. commitBlob then compares
// the upload's id with the id of the stored object.
func (u *upload) commitBlob(ctx context.Context, send func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sending, lost := observeAttempts(ctx)
	err := send(sending)
	if err == nil || !*lost && !isAmbiguous(err) {
		return classifyBlobError(ctx, err)
	}
	return u.resolveCommit(ctx, classifyBlobError(ctx, err), *lost)
}

// isAmbiguous reports whether err leaves open whether this Put or another writer created the object.
func isAmbiguous(err error) bool {
	return bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.ConditionNotMet, bloberror.InvalidBlockList)
}

// resolveCommit determines the outcome of a commit that failed with cause.
func (u *upload) resolveCommit(ctx context.Context, cause error, lost bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTimeout)
	defer cancel()
	stored, err := u.client.GetProperties(ctx, nil)
	switch {
	case err == nil && u.hasCreated(stored.Metadata):
		return nil
	case err == nil:
		return domain.Errorf(domain.Conflict, "the object exists already")
	case lost:
		return domain.Errorf(domain.Uncertain, "the object may or may not become visible; put it again, and if that fails with Conflict, read it: %w", cause)
	case domain.KindOf(classifyBlobError(ctx, err)) == domain.NotFound:
		return domain.Errorf(domain.Unavailable, "another writer created and deleted the object at the same time; put it again: %w", cause)
	}
	return classifyBlobError(ctx, err)
}

// hasCreated reports whether metadata contains the id of u, so that this Put has created the object.
func (u *upload) hasCreated(metadata map[string]*string) bool {
	for name, value := range metadata {
		if strings.EqualFold(name, idName) && value != nil && *value == u.id {
			return true
		}
	}
	return false
}
