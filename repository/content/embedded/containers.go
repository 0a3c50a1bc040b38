package embedded

import (
	"encoding/xml"
	"net/http"
)

// createContainer creates a container. It fails if the container already exists.
func (a *Account) createContainer(c *blobCall) (*blobResponse, error) {
	if err := checkContainer(c.container); err != nil {
		return nil, err
	}
	metadata, err := readMetadata(c.Request)
	if err != nil {
		return nil, err
	}
	if err := a.makeContainer(c.container, metadata); err != nil {
		return nil, err
	}
	made, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	return newChangedResponse(http.StatusCreated, made.about.Load()), nil
}

func (a *Account) makeContainer(name string, metadata map[string]string) error {
	a.index.making.Lock()
	defer a.index.making.Unlock()
	if _, ok := a.index.findContainer(name); ok {
		return newBlobError(http.StatusConflict, "ContainerAlreadyExists", "container %s exists already", name)
	}
	now := a.options.Clock().UTC()
	about := &version{ETag: newETag(), Created: now, Modified: now, Metadata: metadata}
	if err := a.breakIfUnsettled(a.store.makeContainer(name, about)); err != nil {
		return err
	}
	return a.index.addContainer(name, about, nil)
}

// getContainer responds to a GET or HEAD request for a container. The response has only headers.
func (a *Account) getContainer(c *blobCall) (*blobResponse, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	resp := newResponse(http.StatusOK)
	found.about.Load().setProperties(resp.header)
	resp.header.Set("X-Ms-Lease-Status", "unlocked")
	resp.header.Set("X-Ms-Lease-State", "available")
	resp.header.Set("X-Ms-Has-Immutability-Policy", "false")
	resp.header.Set("X-Ms-Has-Legal-Hold", "false")
	return resp, nil
}

// getAccessPolicies returns an empty list, because this account does not support access policies.
func (a *Account) getAccessPolicies(c *blobCall) (*blobResponse, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	var document struct {
		XMLName xml.Name `xml:"SignedIdentifiers"`
	}
	resp, err := newXMLResponse(http.StatusOK, document)
	if err == nil && c.Method == http.MethodHead {
		resp.body, resp.length = nil, 0
	}
	if err == nil {
		about := found.about.Load()
		(&version{ETag: about.ETag, Modified: about.Modified}).setProperties(resp.header)
	}
	return resp, err
}

// publishContainer durably stores the changed properties of a container. Like publishDraft, it may fail with an
// unsettledError.
func publishContainer(s blobStore, container string, about *version) error {
	d, err := s.newDraft(0)
	if err != nil {
		return err
	}
	if err := d.finishWriting(); err != nil {
		d.discardDraft()
		return err
	}
	return s.publishDraft(container, about, d)
}

// setContainerMetadata replaces the metadata of a container.
func (a *Account) setContainerMetadata(c *blobCall) (*blobResponse, error) {
	metadata, err := readMetadata(c.Request)
	if err != nil {
		return nil, err
	}
	a.index.making.Lock()
	defer a.index.making.Unlock()
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	about := *found.about.Load()
	if err := c.conditions.checkChange(&about); err != nil {
		return nil, err
	}
	about.ETag, about.Modified, about.Metadata = newETag(), a.options.Clock().UTC(), metadata
	if err := a.breakIfUnsettled(publishContainer(a.store, c.container, &about)); err != nil {
		return nil, err
	}
	found.about.Store(&about)
	return newChangedResponse(http.StatusOK, &about), nil
}

// deleteContainer deletes a container, its blobs and their uncommitted blocks. As on Azure, no events are reported for
// the blobs.
func (a *Account) deleteContainer(c *blobCall) (*blobResponse, error) {
	cleanUp, err := a.removeContainer(c)
	if err != nil {
		return nil, err
	}
	cleanUp()
	return newResponse(http.StatusAccepted), nil
}

func (a *Account) removeContainer(c *blobCall) (cleanUp func(), err error) {
	a.index.making.Lock()
	defer a.index.making.Unlock()
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	unlock, err := found.lockAll()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := c.conditions.checkChange(found.about.Load()); err != nil {
		return nil, err
	}
	removed, err := a.store.removeContainer(c.container)
	if err := a.breakIfUnsettled(err); err != nil {
		return nil, err
	}
	found.isDeleted = true
	a.index.removeContainer(c.container)
	return func() {
		a.uploads.dropContainer(found.key)
		removed()
	}, nil
}
