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

// A blobLocation is a container of blobs under one of its names.
type blobLocation struct {
	scheme, host string // in lower case, the host without the default port
	path         string // escaped, of the account: "" or /account
	container    string
}

// placeOf returns the location of a container in the account with an endpoint.
func placeOf(endpoint, container string) (blobLocation, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return blobLocation{}, domain.Errorf(domain.Invalid, "blob endpoint: want a URL such as https://account.blob.core.windows.net, without a user, a query or a fragment")
	}
	if container == "" || strings.Contains(container, "/") {
		return blobLocation{}, domain.Errorf(domain.Invalid, "blob container %.70q: want a name", container)
	}
	return blobLocation{scheme: u.Scheme, host: hostOf(u), path: strings.TrimRight(u.EscapedPath(), "/"), container: container}, nil
}

// hostOf returns the host and port of u in a normalized form.
func hostOf(u *url.URL) string {
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

// accountName returns the name of the account: the last part of its path, or the first part of its
// host.
func (p blobLocation) accountName() string {
	if p.path != "" {
		return path.Base(p.path)
	}
	name, _, _ := strings.Cut(p.host, ".")
	return name
}

// nameIn returns the name of the blob that uri names, if it is in one of places, which are names of one
// container. anyHost says that the account has other names, on hosts that cannot be listed. The text
// after a question mark is a key to access that the hub does not use: it is neither read nor shown.
func nameIn(places []blobLocation, anyHost bool, uri string) (string, error) {
	const longest = 16 << 10
	if len(uri) > longest {
		return "", invalidLocation("it has %d characters, more than %d", len(uri), longest)
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil: // the error would contain the URI
		return "", invalidLocation("it cannot be read")
	case u.Scheme == "" || u.Host == "" || u.Opaque != "":
		return "", invalidLocation("want scheme, host and path, as in %s/NAME", places[0].containerURL())
	case u.User != nil:
		return "", invalidLocation("it carries a user or a password")
	case u.Fragment != "" || strings.Contains(uri, "#"):
		return "", invalidLocation("it carries a fragment; in a name, # is written %%23")
	}
	for parameter := range u.Query() {
		if p := strings.ToLower(parameter); p == "snapshot" || p == "versionid" {
			return "", invalidLocation("it names a %s, and the hub reads a blob as it is", p)
		}
	}
	account := blobLocation{scheme: strings.ToLower(u.Scheme), host: hostOf(u)}
	of := slices.IndexFunc(places, func(p blobLocation) bool {
		isHost := p.scheme == account.scheme && p.host == account.host || anyHost && strings.HasPrefix(account.scheme, "http")
		return isHost && strings.HasPrefix(u.EscapedPath(), p.path+"/")
	})
	if of < 0 {
		return "", invalidLocation("it is of a foreign account at %.100q; the hub's is %s", account.accountURL(), places[0].accountURL())
	}
	escaped, isIn := strings.CutPrefix(u.EscapedPath(), places[of].containerURL()[len(places[of].scheme+"://"+places[of].host):]+"/")
	if !isIn {
		return "", invalidLocation("it is of a foreign container; the hub's is %s", places[0].container)
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

// checkForeignName refuses names that other software may interpret differently. Domains may use more of
// Unicode than the hub does.
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
