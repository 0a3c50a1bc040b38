package embedded

import (
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"
)

// createContainer creates a container. It fails if the container exists.
func (a *Account) createContainer(c *blobCall) (*blobAnswer, error) {
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
	answered := newAnswer(http.StatusCreated)
	(&version{ETag: made.about.Load().ETag, Modified: made.about.Load().Modified}).setProperties(answered.header)
	return answered, nil
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

// getContainer answers GET and HEAD of a container, neither of which has a body.
func (a *Account) getContainer(c *blobCall) (*blobAnswer, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	answered := newAnswer(http.StatusOK)
	found.about.Load().setProperties(answered.header)
	answered.header.Set("X-Ms-Lease-Status", "unlocked")
	answered.header.Set("X-Ms-Lease-State", "available")
	answered.header.Set("X-Ms-Has-Immutability-Policy", "false")
	answered.header.Set("X-Ms-Has-Legal-Hold", "false")
	return answered, nil
}

const maxResults = 5000 // blobs in one answer

// listBlobs answers with a page of a container's blobs, in the order of their names.
func (a *Account) listBlobs(c *blobCall) (*blobAnswer, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	list := blobList{
		ServiceEndpoint: a.endpointAt(c.urlScheme(), c.Host) + "/", ContainerName: c.container,
		Prefix: c.query.Get("prefix"), Marker: c.query.Get("marker"), MaxResults: maxResults,
	}
	if text := c.query.Get("maxresults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, newBlobError(400, "OutOfRangeQueryParameterValue", "maxresults %.20q: want a number from 1 on", text)
		}
		list.MaxResults = min(n, maxResults)
	}
	withMetadata, err := readInclude(c.query)
	if err != nil {
		return nil, err
	}
	from, err := base64.URLEncoding.DecodeString(list.Marker)
	if err != nil {
		return nil, newBlobError(400, "InvalidQueryParameterValue", "the marker is not one of a list")
	}
	found.blobs.Ascend(&version{Name: max(string(from), list.Prefix)}, func(v *version) bool {
		switch {
		case !strings.HasPrefix(v.Name, list.Prefix):
			return false
		case len(list.Blobs) == list.MaxResults:
			list.NextMarker = base64.URLEncoding.EncodeToString([]byte(v.Name))
			return false
		}
		list.Blobs = append(list.Blobs, newListedBlob(v, withMetadata))
		return true
	})
	return withXML(http.StatusOK, list)
}

// readInclude reports whether metadata is requested. It ignores requested features that this
// account does not support, such as snapshots.
func readInclude(query map[string][]string) (metadata bool, err error) {
	for _, all := range query["include"] {
		for what := range strings.SplitSeq(all, ",") {
			switch what {
			case "metadata":
				metadata = true
			case "", "snapshots", "versions", "deleted", "deletedwithversions", "copy", "tags", "immutabilitypolicy", "legalhold":
			default:
				return false, notImplemented("lists that include %.40q", what)
			}
		}
	}
	return metadata, nil
}

type blobList struct {
	XMLName         xml.Name `xml:"EnumerationResults"`
	ServiceEndpoint string   `xml:",attr"`
	ContainerName   string   `xml:",attr"`
	Prefix          string
	Marker          string
	MaxResults      int
	Blobs           []listedBlob `xml:"Blobs>Blob"`
	NextMarker      string
}

type listedBlob struct {
	Name       string
	Properties listedProperties
	Metadata   *listedMetadata `xml:",omitempty"`
}

type listedProperties struct {
	CreationTime       string `xml:"Creation-Time"`
	LastModified       string `xml:"Last-Modified"`
	ETag               string `xml:"Etag"`
	ContentLength      int64  `xml:"Content-Length"`
	ContentType        string `xml:"Content-Type"`
	ContentEncoding    string `xml:"Content-Encoding"`
	ContentLanguage    string `xml:"Content-Language"`
	ContentMD5         string `xml:"Content-MD5,omitempty"`
	CacheControl       string `xml:"Cache-Control"`
	ContentDisposition string `xml:"Content-Disposition"`
	BlobType           string
	LeaseStatus        string
	LeaseState         string
}

func newListedBlob(v *version, metadata bool) listedBlob {
	blob := listedBlob{Name: v.Name, Properties: listedProperties{
		CreationTime:       v.Created.UTC().Format(http.TimeFormat),
		LastModified:       v.Modified.UTC().Format(http.TimeFormat),
		ETag:               strings.Trim(v.ETag, `"`),
		ContentLength:      v.size,
		ContentType:        v.Headers["Content-Type"],
		ContentEncoding:    v.Headers["Content-Encoding"],
		ContentLanguage:    v.Headers["Content-Language"],
		ContentMD5:         base64.StdEncoding.EncodeToString(v.MD5),
		CacheControl:       v.Headers["Cache-Control"],
		ContentDisposition: v.Headers["Content-Disposition"],
		BlobType:           "BlockBlob", LeaseStatus: "unlocked", LeaseState: "available",
	}}
	if metadata {
		blob.Metadata = &listedMetadata{v.Metadata}
	}
	return blob
}

// listedMetadata has an element for each name.
type listedMetadata struct{ values map[string]string }

// MarshalXML implements [xml.Marshaler].
func (m *listedMetadata) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for name, value := range m.values {
		if err := e.EncodeElement(value, xml.StartElement{Name: xml.Name{Local: name}}); err != nil {
			return err
		}
	}
	return e.EncodeToken(start.End())
}
