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
	blockSize = 4 << 20 // from which on Azure gives its full throughput
	atOnce    = 2       // blocks of one object under way, while the next one is read
	lookLasts = 20 * time.Second
)

// blocks are buffers of one block.
var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// Put implements [repository.Content]. What is larger than a block is staged in
// blocks, which are not visible, and then committed as a whole: either way one request
// makes the object, with the condition that it does not exist. If the outcome of
// that request is unknown, Put fails with Uncertain: the object may appear.
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

// An upload is one Put. Its id is part of the object, by which it knows its own.
type upload struct {
	client *blockblob.Client
	id     string
	source io.Reader
	staged []string // ids of blocks
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

// fillBuffer reads until p is full, and there may be more, or until the source ends. The
// end is exactly io.EOF: io.ErrUnexpectedEOF, which io.ReadFull also returns at
// a short end of the source, is what a broken connection returns.
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

// stageAll stages the source in blocks, of which the first has been read. When it
// returns, no block is under way.
func (u *upload) stageAll(outer context.Context, first *[blockSize]byte) error {
	group, ctx := errgroup.WithContext(outer)
	group.SetLimit(atOnce)
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

// nextBlock returns the id of one more block. All have one length.
func (u *upload) nextBlock() string {
	id := binary.BigEndian.AppendUint32([]byte(u.id), uint32(len(u.staged))) //nolint:gosec // far below
	u.staged = append(u.staged, base64.StdEncoding.EncodeToString(id))
	return u.staged[len(u.staged)-1]
}

// conditions of the request that makes the object, and the name it is known by.
func (u *upload) ifNone() *blob.AccessConditions {
	none := azcore.ETagAny
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &none}}
}

const idName = "putid" // of the metadata

func (u *upload) blobMetadata() map[string]*string { return map[string]*string{idName: &u.id} }

func (u *upload) commitWhole(ctx context.Context, data []byte) error {
	_, err := u.client.Upload(ctx, streaming.NopCloser(bytes.NewReader(data)),
		&blockblob.UploadOptions{Metadata: u.blobMetadata(), AccessConditions: u.ifNone()})
	return err
}

func (u *upload) commitBlocks(ctx context.Context) error {
	_, err := u.client.CommitBlockList(ctx, u.staged,
		&blockblob.CommitBlockListOptions{Metadata: u.blobMetadata(), AccessConditions: u.ifNone()})
	return err
}

// commitBlob sends the request that makes the object. The client may repeat it:
// then it finds the object that it has made, and compares its id.
func (u *upload) commitBlob(ctx context.Context, send func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sending, lost := withWitness(ctx)
	err := send(sending)
	if err == nil || !*lost && !isQuestion(err) {
		return classifyBlobError(ctx, err)
	}
	return u.resolveCommit(ctx, classifyBlobError(ctx, err), *lost)
}

// isQuestion reports whether an answer leaves open who has made an object.
func isQuestion(err error) bool {
	return bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.ConditionNotMet, bloberror.InvalidBlockList)
}

// resolveCommit finds the outcome of a commit that failed with cause.
func (u *upload) resolveCommit(ctx context.Context, cause error, lost bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookLasts)
	defer cancel()
	there, err := u.client.GetProperties(ctx, nil)
	switch {
	case err == nil && u.hasMade(there.Metadata):
		return nil
	case err == nil:
		return domain.Errorf(domain.Conflict, "there is such an object already")
	case lost:
		return domain.Errorf(domain.Uncertain, "it may appear, or not; put it again, and if that meets Conflict, read it: %w", cause)
	case domain.KindOf(classifyBlobError(ctx, err)) == domain.NotFound:
		return domain.Errorf(domain.Unavailable, "another writer was there at the same time, and the object is gone; put it again: %w", cause)
	}
	return classifyBlobError(ctx, err)
}

func (u *upload) hasMade(metadata map[string]*string) bool {
	for name, value := range metadata {
		if strings.EqualFold(name, idName) && value != nil && *value == u.id {
			return true
		}
	}
	return false
}
