package content

import (
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

// A blobLocation is one of the addresses of a container of blobs.
type blobLocation struct {
	scheme, host string // in lower case; host does not include the default port
	path         string // escaped path of the account: "" or /account
	container    string
}

// parseLocation returns the location of a container in the account whose URL is endpoint.
func parseLocation(endpoint, container string) (blobLocation, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return blobLocation{}, domain.Errorf(domain.Invalid, "blob endpoint: want a URL such as https://account.blob.core.windows.net, without a user, a query or a fragment")
	}
	if container == "" || strings.Contains(container, "/") {
		return blobLocation{}, domain.Errorf(domain.Invalid, "blob container %.70q: want a name", container)
	}
	return blobLocation{scheme: u.Scheme, host: normalizeHost(u), path: strings.TrimRight(u.EscapedPath(), "/"), container: container}, nil
}

// normalizeHost returns the host of u in lower case, with the port unless it is the default port.
func normalizeHost(u *url.URL) string {
	host := strings.ToLower(u.Hostname())
	if port := u.Port(); port != "" && port != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		return net.JoinHostPort(host, port)
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func (p blobLocation) accountURL() string { return p.scheme + "://" + p.host + p.path }

func (p blobLocation) containerURL() string { return p.accountURL() + "/" + p.container }

// accountName returns the name of the account: the last segment of its path or, without a path, the
// first label of its host.
func (p blobLocation) accountName() string {
	if p.path != "" {
		return path.Base(p.path)
	}
	name, _, _ := strings.Cut(p.host, ".")
	return name
}

// parseBlobURI returns the name of the blob that uri identifies. The blob must be in one of locations,
// which are all locations of one container. If anyHost is true, the host of uri is not compared. The
// query of uri may be a shared access signature, so no error contains the query.
func parseBlobURI(locations []blobLocation, anyHost bool, uri string) (string, error) {
	const longest = 16 << 10
	if len(uri) > longest {
		return "", invalidLocation("it has %d characters, more than %d", len(uri), longest)
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil: // err is omitted, because it contains the URI
		return "", invalidLocation("it cannot be read")
	case u.Scheme == "" || u.Host == "" || u.Opaque != "":
		return "", invalidLocation("want scheme, host and path, as in %s/NAME", locations[0].containerURL())
	case u.User != nil:
		return "", invalidLocation("it contains a user or a password")
	case u.Fragment != "" || strings.Contains(uri, "#"):
		return "", invalidLocation("it contains a fragment; in a name, # is written %%23")
	}
	for parameter := range u.Query() {
		if p := strings.ToLower(parameter); p == "snapshot" || p == "versionid" {
			return "", invalidLocation("it names a %s; the hub reads only the current version of a blob", p)
		}
	}
	account := blobLocation{scheme: strings.ToLower(u.Scheme), host: normalizeHost(u)}
	index := slices.IndexFunc(locations, func(p blobLocation) bool {
		isHost := p.scheme == account.scheme && p.host == account.host || anyHost && strings.HasPrefix(account.scheme, "http")
		return isHost && strings.HasPrefix(u.EscapedPath(), p.path+"/")
	})
	if index < 0 {
		return "", invalidLocation("it is of a foreign account at %.100q; the hub's account is %s", account.accountURL(), locations[0].accountURL())
	}
	location := locations[index]
	escaped, isIn := strings.CutPrefix(u.EscapedPath(), location.path+"/"+location.container+"/")
	if !isIn {
		return "", invalidLocation("it is of a foreign container; the hub's container is %s", location.container)
	}
	name, err := url.PathUnescape(escaped)
	if err != nil {
		return "", invalidLocation("its path cannot be read")
	}
	if err := checkForeignName(name); err != nil {
		return "", err
	}
	return name, nil
}

// checkForeignName refuses names of blobs that other software may interpret differently. A domain may
// use any characters of Unicode in a name; the hub uses only a few.
func checkForeignName(name string) error {
	const longest = 1024
	switch segments := strings.Split(name, "/"); {
	case name == "":
		return invalidLocation("it names no blob")
	case !utf8.ValidString(name) || utf8.RuneCountInString(name) > longest:
		return invalidLocation("the name of the blob is not UTF-8, or has more than %d characters", longest)
	case slices.Contains(segments, "") || slices.Contains(segments, ".") || slices.Contains(segments, ".."):
		return invalidLocation("the name of the blob has a segment that is empty, . or ..")
	case strings.Contains(name, `\`) || strings.ContainsFunc(name, unicode.IsControl):
		return invalidLocation("the name of the blob has a backslash or a control character")
	}
	return nil
}

func invalidLocation(format string, args ...any) error {
	return domain.Errorf(domain.Invalid, "content URI: "+format, args...)
}
