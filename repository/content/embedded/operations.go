package embedded

import (
	"net/http"
	"strings"
)

// An operation executes one kind of request. A shared access signature must grant one of its permissions; if
// permissions is empty, none suffices. An account SAS must also grant the resource type: s (service), c (containers) or
// o (blobs); if resource is empty, no type is required.
type operation struct {
	run         func(*blobCall) (*blobResponse, error)
	permissions string
	resource    string
}

// anyPermission contains all permissions. For a batch one of them suffices, because each request of the batch is
// authorized separately.
const anyPermission = readPermission + createPermission + writePermission + deletePermission + listPermission

// The permissions of shared access signatures.
const (
	readPermission   = "r"
	createPermission = "c" // permits writing a new blob, but not overwriting a blob
	writePermission  = "w"
	deletePermission = "d"
	listPermission   = "l"
)

// operationOf returns the operation that a call requests.
func (a *Account) operationOf(c *blobCall) (operation, error) {
	restype, comp := c.query.Get("restype"), c.query.Get("comp")
	switch {
	case restype == "account" && comp == "properties" && isRead(c.Method):
		return operation{a.getAccount, readPermission + listPermission, ""}, nil
	case c.container == "" && c.Method == http.MethodGet && comp == "list" && restype == "":
		return operation{a.listContainers, listPermission, "s"}, nil
	case c.container == "" && restype == "service" && comp == "properties" && c.Method == http.MethodGet:
		return operation{a.getServiceProperties, readPermission, "s"}, nil
	case c.container == "" && restype == "service" && comp == "properties" && c.Method == http.MethodPut:
		return operation{a.setServiceProperties, writePermission, "s"}, nil
	case c.container == "" && restype == "service" && comp == "stats" && c.Method == http.MethodGet:
		return operation{a.getServiceStats, readPermission, "s"}, nil
	case c.container == "" && comp == "batch" && c.Method == http.MethodPost: // some clients add restype=container, which is ignored
		return operation{a.submitBatch, anyPermission, ""}, nil
	case c.container == "":
		return operation{}, notImplemented("%s of the account itself with restype %.40q and comp %.40q", c.Method, restype, comp)
	case c.blob == "" && restype == "container":
		return a.containerOperation(c, comp)
	case c.blob == "" || restype != "":
		return operation{}, notImplemented("%s of a path without a blob's name, or with restype %.40q", c.Method, restype)
	}
	return a.blobOperation(c, comp)
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

func (a *Account) containerOperation(c *blobCall, comp string) (operation, error) {
	switch c.Method + " " + comp {
	case "PUT ":
		return operation{a.createContainer, createPermission + writePermission, "c"}, nil
	case "GET ", "HEAD ", "GET metadata", "HEAD metadata":
		return operation{a.getContainer, readPermission, "c"}, nil
	case "GET acl", "HEAD acl":
		return operation{a.getAccessPolicies, "", "c"}, nil
	case "PUT acl":
		return operation{}, notImplemented("setting access policies of containers (comp=acl)")
	case "POST batch":
		return operation{a.submitBatch, anyPermission, ""}, nil
	case "PUT metadata":
		return operation{a.setContainerMetadata, writePermission, "c"}, nil
	case "DELETE ":
		return operation{a.deleteContainer, deletePermission, "c"}, nil
	case "GET list":
		return operation{a.listBlobs, listPermission, "c"}, nil
	}
	return operation{}, notImplemented("%s of a container with comp %.40q", c.Method, comp)
}

func (a *Account) blobOperation(c *blobCall, comp string) (operation, error) {
	const write = createPermission + writePermission
	if c.Header.Get("X-Ms-Copy-Source") != "" {
		switch {
		case c.Method == http.MethodPut && comp == "" && c.Header.Get("X-Ms-Blob-Type") == "":
			return operation{a.copyBlob, write, "o"}, nil
		case comp == "block":
			return operation{}, notImplemented("blocks that are read from a URL (Put Block From URL)")
		case c.Header.Get("X-Ms-Blob-Type") != "":
			return operation{}, notImplemented("blobs that are read from a URL (Put Blob From URL); Copy Blob has no x-ms-blob-type")
		}
	}
	for name := range c.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-source-") || lower == "x-ms-copy-source" {
			return operation{}, newBlobError(400, "UnsupportedHeader", "header %.60s belongs to a copy, and the request is not a copy", lower)
		}
	}
	switch c.Method + " " + comp {
	case "PUT ":
		return operation{a.putBlob, write, "o"}, nil
	case "PUT block":
		return operation{a.putBlock, writePermission, "o"}, nil
	case "PUT blocklist":
		return operation{a.putBlockList, write, "o"}, nil
	case "GET blocklist":
		return operation{a.getBlockList, readPermission, "o"}, nil
	case "GET ", "HEAD ":
		return operation{a.getBlob, readPermission, "o"}, nil
	case "GET metadata", "HEAD metadata":
		return operation{a.getMetadata, readPermission, "o"}, nil
	case "PUT metadata":
		return operation{a.setMetadata, writePermission, "o"}, nil
	case "PUT properties":
		return operation{a.setProperties, writePermission, "o"}, nil
	case "PUT tier":
		return operation{a.setTier, writePermission, "o"}, nil
	case "PUT copy":
		return operation{a.abortCopy, writePermission, "o"}, nil
	case "DELETE ":
		return operation{a.deleteBlob, deletePermission, "o"}, nil
	}
	return operation{}, notImplemented("%s of a blob with comp %.40q", c.Method, comp)
}

// getAccount returns the kind and SKU of the account.
func (a *Account) getAccount(*blobCall) (*blobResponse, error) {
	resp := newResponse(http.StatusOK)
	resp.header.Set("X-Ms-Sku-Name", "Standard_RAGRS")
	resp.header.Set("X-Ms-Account-Kind", "StorageV2")
	resp.header.Set("X-Ms-Is-Hns-Enabled", "false")
	return resp, nil
}
