package embedded

import (
	"cmp"
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/btree"
)

const (
	maxResults   = 5000 // maximum number of entries in one response
	maxDelimiter = 1024 // characters
)

// A listHead contains the XML elements with which every list begins.
type listHead struct {
	XMLName         xml.Name `xml:"EnumerationResults"`
	ServiceEndpoint string   `xml:",attr"`
	Prefix          string
	Marker          string
	MaxResults      int
}

// readListHead reads the query parameters of a list request.
func (a *Account) readListHead(c *blobCall) (listHead, error) {
	head := listHead{
		ServiceEndpoint: a.endpointAt(c.urlScheme(), c.Host) + "/",
		Prefix:          c.query.Get("prefix"), Marker: c.query.Get("marker"), MaxResults: maxResults,
	}
	if text := c.query.Get("maxresults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return head, newBlobError(400, "OutOfRangeQueryParameterValue", "maxresults %.20q: want a number from 1 on", text)
		}
		head.MaxResults = min(n, maxResults)
	}
	return head, nil
}

// firstName returns the lowest name that the page may contain. As in Azurite, a marker is the last entry of the
// previous page, so a client may send any name.
func (h listHead) firstName(delimiter string) string {
	if h.Marker == "" {
		return h.Prefix
	}
	if rest, ok := strings.CutPrefix(h.Marker, h.Prefix); ok && delimiter != "" {
		if before, _, ok := strings.Cut(rest, delimiter); ok {
			return nameAfter(h.Prefix + before + delimiter)
		}
	}
	return max(h.Marker+"\x00", h.Prefix)
}

// listBlobs returns a page of a container's blobs, sorted by name. If there is a delimiter, blobs whose names are equal
// up to the first delimiter after the prefix become one entry.
func (a *Account) listBlobs(c *blobCall) (*blobResponse, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	head, err := a.readListHead(c)
	if err != nil {
		return nil, err
	}
	list := blobList{listHead: head, ContainerName: c.container, Delimiter: c.query.Get("delimiter")}
	if utf8.RuneCountInString(list.Delimiter) > maxDelimiter {
		return nil, newBlobError(400, "OutOfRangeQueryParameterValue", "the delimiter has more than %d characters", maxDelimiter)
	}
	include, err := readInclude(c.query)
	if err != nil {
		return nil, err
	}
	blobs := found.blobs
	if include.uncommitted {
		blobs = a.addUncommitted(found)
	}
	from := head.firstName(list.Delimiter)
	for isMore := true; isMore; {
		from, isMore = list.addFrom(blobs, from, include)
	}
	return newXMLResponse(http.StatusOK, list)
}

// addUncommitted returns the blobs of a container plus those that have only uncommitted blocks.
func (a *Account) addUncommitted(found *blobContainer) *btree.BTreeG[*version] {
	blobs := found.blobs.Copy()
	for name, touched := range a.uploads.listBlobs(found.uploadKey("")) {
		v := &version{Name: name, Created: touched, Modified: touched}
		if _, isCommitted := blobs.Get(v); !isCommitted {
			blobs.Set(v)
		}
	}
	return blobs
}

// addFrom adds blobs to the page, starting at the name from. It stops when the page is full or after it has added a
// prefix. If isMore is true, the page is not full, and the caller must continue at next.
func (l *blobList) addFrom(blobs *btree.BTreeG[*version], from string, include listIncludes) (next string, isMore bool) {
	blobs.Ascend(&version{Name: from}, func(v *version) bool {
		switch {
		case !strings.HasPrefix(v.Name, l.Prefix):
			return false
		case l.length() == l.MaxResults:
			l.NextMarker = l.last
			return false
		}
		if l.Delimiter != "" {
			if before, _, ok := strings.Cut(v.Name[len(l.Prefix):], l.Delimiter); ok {
				prefix := l.Prefix + before + l.Delimiter
				l.Prefixes, l.last = append(l.Prefixes, listedPrefix{prefix}), prefix
				next, isMore = nameAfter(prefix), true
				return false
			}
		}
		l.Blobs, l.last = append(l.Blobs, newListedBlob(v, include)), v.Name
		return true
	})
	return next, isMore
}

// nameAfter returns the first string after all strings with a prefix. It increments the last byte of prefix, which is
// never 0xFF in UTF-8.
func nameAfter(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string([]byte{prefix[last] + 1})
}

// listIncludes are the optional parts of list entries.
type listIncludes struct{ metadata, copy, uncommitted bool }

// readInclude reads which optional parts a client requests. It ignores parts that are always empty here, such as
// snapshots.
func readInclude(query map[string][]string) (include listIncludes, err error) {
	for _, all := range query["include"] {
		for what := range strings.SplitSeq(all, ",") {
			switch what {
			case "metadata":
				include.metadata = true
			case "copy":
				include.copy = true
			case "uncommittedblobs":
				include.uncommitted = true
			case "", "snapshots", "versions", "deleted", "deletedwithversions", "tags", "immutabilitypolicy", "legalhold", "system":
			default:
				return include, notImplemented("lists that include %.40q", what)
			}
		}
	}
	return include, nil
}

// listContainers returns a page of containers, sorted by name.
func (a *Account) listContainers(c *blobCall) (*blobResponse, error) {
	head, err := a.readListHead(c)
	if err != nil {
		return nil, err
	}
	include, err := readInclude(c.query)
	if err != nil {
		return nil, err
	}
	list, from := containerList{listHead: head}, head.firstName("")
	for _, named := range a.index.sortedContainers() {
		if named.name < from || !strings.HasPrefix(named.name, head.Prefix) {
			continue
		}
		if len(list.Containers) == head.MaxResults {
			list.NextMarker = list.Containers[head.MaxResults-1].Name
			break
		}
		list.Containers = append(list.Containers, newListedContainer(named.name, named.about.Load(), include))
	}
	return newXMLResponse(http.StatusOK, list)
}

// A namedContainer is a container with its name.
type namedContainer struct {
	name string
	*blobContainer
}

// sortedContainers returns all containers, sorted by name.
func (i *blobIndex) sortedContainers() []namedContainer {
	i.mu.Lock()
	all := make([]namedContainer, 0, len(i.containers))
	for name, c := range i.containers {
		all = append(all, namedContainer{name, c})
	}
	i.mu.Unlock()
	slices.SortFunc(all, func(a, b namedContainer) int { return cmp.Compare(a.name, b.name) })
	return all
}

type containerList struct {
	listHead
	Containers []listedContainer `xml:"Containers>Container"`
	NextMarker string
}

type listedContainer struct {
	Name       string
	Properties containerProperties
	Metadata   *listedMetadata `xml:",omitempty"`
}

type containerProperties struct {
	LastModified          string `xml:"Last-Modified"`
	ETag                  string `xml:"Etag"`
	LeaseStatus           string
	LeaseState            string
	HasImmutabilityPolicy bool
	HasLegalHold          bool
}

func newListedContainer(name string, about *version, include listIncludes) listedContainer {
	listed := listedContainer{Name: name, Properties: containerProperties{
		LastModified: about.Modified.UTC().Format(http.TimeFormat), ETag: strings.Trim(about.ETag, `"`),
		LeaseStatus: "unlocked", LeaseState: "available",
	}}
	if include.metadata {
		listed.Metadata = &listedMetadata{about.Metadata}
	}
	return listed
}

type blobList struct {
	listHead
	ContainerName string         `xml:",attr"`
	Delimiter     string         `xml:",omitempty"`
	Blobs         []listedBlob   `xml:"Blobs>Blob"`
	Prefixes      []listedPrefix `xml:"Blobs>BlobPrefix"`
	NextMarker    string

	last string // last entry of the page
}

// length returns the number of entries, which the parameter maxresults limits.
func (l *blobList) length() int { return len(l.Blobs) + len(l.Prefixes) }

// A listedPrefix is one entry for all blobs whose names begin with Name.
type listedPrefix struct{ Name string }

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
	listedTier
	*listedCopy
}

func newListedBlob(v *version, include listIncludes) listedBlob {
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
		listedTier: newListedTier(v),
	}}
	if include.metadata {
		blob.Metadata = &listedMetadata{v.Metadata}
	}
	if include.copy && v.Copy != nil {
		blob.Properties.listedCopy = v.Copy.list(v.size)
	}
	return blob
}

// listedMetadata is metadata that XML represents as one element per name.
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
