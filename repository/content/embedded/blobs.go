package embedded

import (
	"crypto/md5" //nolint:gosec // the protocol says so
	"encoding/base64"
	"errors"
	"hash"
	"io"
	"net/http"
	"strconv"
)

// putBlob writes a blob in one request.
func (a *Account) putBlob(c *call) (*answer, error) {
	found, err := a.find(c)
	if err != nil {
		return nil, err
	}
	if kind := c.Header.Get("X-Ms-Blob-Type"); kind != "BlockBlob" {
		return nil, notImplemented("blobs of the type %.20q, only BlockBlob", kind)
	}
	v, err := readProperties(c.Header, true)
	if err != nil {
		return nil, err
	}
	if err := c.conditions.check(found.blob(c.blob)); err != nil {
		return nil, err // before the content has come, if that is soon enough
	}
	sum := md5.New() //nolint:gosec // the protocol says so
	d, _, err := a.receive(c, sum, "Content-Md5", "X-Ms-Blob-Content-Md5")
	if err != nil {
		return nil, err
	}
	v.MD5 = sum.Sum(nil)
	answered, err := a.publish(c, found, v, d)
	if err == nil {
		a.uploads.drop(c.name())
	}
	return answered, err
}

// receive makes a draft of the body of a call, and compares its MD5 with those
// that the headers say. Nothing is left of it if it fails.
func (a *Account) receive(c *call, sum hash.Hash, claims ...string) (_ draft, n int64, err error) {
	switch {
	case c.ContentLength < 0:
		return nil, 0, refuse(http.StatusLengthRequired, "MissingContentLengthHeader", "the length of the content is not said")
	case c.ContentLength > a.options.MaxBlob:
		return nil, 0, refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "the content has %d bytes, more than %d", c.ContentLength, a.options.MaxBlob)
	}
	d, err := a.store.draft(c.ContentLength)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			d.discard()
		}
	}()
	body := arrivingBody{ended{c.Context(), c.Body}}
	if n, err = io.Copy(io.MultiWriter(d, sum), body); err != nil {
		return nil, n, err
	}
	if n != c.ContentLength {
		return nil, n, errBroken
	}
	for _, header := range claims {
		claimed, err := readMD5(c.Header, header)
		if err == nil {
			err = checkMD5(claimed, sum.Sum(nil))
		}
		if err != nil {
			return nil, n, err
		}
	}
	return d, n, d.done()
}

// errBroken is for a client that has gone, or counted wrongly.
var errBroken = refuse(400, "InvalidInput", "the content broke off before its end")

// An arrivingBody tells what is wrong with a client from what is wrong with the disk.
type arrivingBody struct{ r io.Reader }

func (b arrivingBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errBroken
	}
	return n, err
}

// publish makes d the content of v, and v the version of the blob that a call
// names, if its conditions hold.
func (a *Account) publish(c *call, found *container, v *version, d draft) (*answer, error) {
	lock := found.lock(c.blob)
	lock.Lock()
	defer lock.Unlock()
	old := found.blob(c.blob)
	if err := c.conditions.check(old); err != nil {
		d.discard()
		return nil, err
	}
	v.Name, v.ETag = c.blob, newETag()
	v.Modified = a.options.Clock().UTC()
	v.Created = v.Modified
	if old != nil {
		v.Created = old.Created
	}
	if err := a.settle(a.store.publish(c.container, v, d)); err != nil {
		return nil, err
	}
	found.blobs.Set(v)
	a.report(BlobCreated, c, v, v.Modified)
	answered := newAnswer(http.StatusCreated)
	(&version{ETag: v.ETag, Modified: v.Modified}).setProperties(answered.header)
	if v.MD5 != nil {
		answered.header.Set("Content-Md5", base64.StdEncoding.EncodeToString(v.MD5))
	}
	answered.header.Set("X-Ms-Request-Server-Encrypted", "false")
	return answered, nil
}

// settle ends all service if err says that nobody knows what is on disk.
func (a *Account) settle(err error) error {
	if _, ok := errors.AsType[unsettled](err); ok {
		a.breakDown(err)
	}
	return err
}

// getBlob answers GET and HEAD.
func (a *Account) getBlob(c *call) (*answer, error) {
	found, err := a.find(c)
	if err != nil {
		return nil, err
	}
	lock := found.lock(c.blob)
	lock.RLock()
	defer lock.RUnlock()
	v := found.blob(c.blob)
	if v == nil {
		return nil, blobNotFound()
	}
	if err := c.conditions.checkRead(v); err != nil {
		return nil, err
	}
	if c.Method == http.MethodHead {
		answered := describe(http.StatusOK, v)
		answered.header.Set("Content-Length", strconv.FormatInt(v.size, 10))
		setMD5(answered.header, "Content-Md5", v)
		return answered, nil
	}
	part, err := readSpan(c.Header, v.size)
	if err != nil {
		return nil, err
	}
	file, err := a.store.open(c.container, v)
	if err != nil {
		return nil, err
	}
	answered := describe(http.StatusOK, v)
	if part.whole {
		setMD5(answered.header, "Content-Md5", v)
	} else {
		answered.status = http.StatusPartialContent
		answered.header.Set("Content-Range", part.contentRange(v.size))
		setMD5(answered.header, "X-Ms-Blob-Content-Md5", v)
	}
	answered.body, answered.length = newPiece(c.Context(), file, part.from, part.length), part.length
	return answered, nil
}

// describe returns an answer with the properties of v.
func describe(status int, v *version) *answer {
	answered := newAnswer(status)
	v.setProperties(answered.header)
	for name, value := range v.Headers {
		answered.header.Set(name, value)
	}
	answered.header.Set("Accept-Ranges", "bytes")
	answered.header.Set("X-Ms-Creation-Time", v.Created.UTC().Format(http.TimeFormat))
	answered.header.Set("X-Ms-Blob-Type", "BlockBlob")
	answered.header.Set("X-Ms-Lease-Status", "unlocked")
	answered.header.Set("X-Ms-Lease-State", "available")
	answered.header.Set("X-Ms-Server-Encrypted", "false")
	return answered
}

func setMD5(h http.Header, name string, v *version) {
	if v.MD5 != nil {
		h.Set(name, base64.StdEncoding.EncodeToString(v.MD5))
	}
}

// deleteBlob removes a blob, and the blocks that wait to become its content.
func (a *Account) deleteBlob(c *call) (*answer, error) {
	found, err := a.find(c)
	if err != nil {
		return nil, err
	}
	if what := c.Header.Get("X-Ms-Delete-Snapshots"); what != "" && what != "include" {
		return nil, notImplemented("deleting snapshots alone")
	}
	if err := a.remove(c, found); err != nil {
		return nil, err
	}
	a.uploads.drop(c.name())
	answered := newAnswer(http.StatusAccepted)
	answered.header.Set("X-Ms-Delete-Type-Permanent", "true")
	return answered, nil
}

func (a *Account) remove(c *call, found *container) error {
	lock := found.lock(c.blob)
	lock.Lock()
	defer lock.Unlock()
	v := found.blob(c.blob)
	if v == nil {
		return blobNotFound()
	}
	if err := c.conditions.check(v); err != nil {
		return err
	}
	if err := a.settle(a.store.remove(c.container, v)); err != nil {
		return err
	}
	found.blobs.Delete(v)
	a.report(BlobDeleted, c, v, a.options.Clock().UTC())
	return nil
}

func blobNotFound() error { return refuse(404, "BlobNotFound", "there is no such blob") }
