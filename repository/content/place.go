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

// A place is a container of blobs under one of its names.
type place struct {
	scheme, host string // in lower case, the host without the port that goes without saying
	path         string // escaped, of the account: "" or /account
	container    string
}

// placeOf returns the place of a container in the account with an endpoint.
func placeOf(endpoint, container string) (place, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return place{}, domain.Errorf(domain.Invalid, "blob endpoint: want a URL such as https://account.blob.core.windows.net, without a user, a query or a fragment")
	}
	if container == "" || strings.Contains(container, "/") {
		return place{}, domain.Errorf(domain.Invalid, "blob container %.70q: want a name", container)
	}
	return place{scheme: u.Scheme, host: hostOf(u), path: strings.TrimRight(u.EscapedPath(), "/"), container: container}, nil
}

// hostOf returns the host and port of u in the one form in which they compare.
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

func (p place) account() string { return p.scheme + "://" + p.host + p.path }

func (p place) url() string { return p.account() + "/" + p.container }

// name returns the name of the account: the last of its path, or the first of its host.
func (p place) name() string {
	if p.path != "" {
		return path.Base(p.path)
	}
	name, _, _ := strings.Cut(p.host, ".")
	return name
}

// nameIn returns the name of the blob that uri names, if it is in one of places,
// which are names of one container; anyHost says that the account has others, on
// hosts that nobody can list. What comes after a question mark is the key to
// a door that the hub does not use: it is neither looked at nor told.
func nameIn(places []place, anyHost bool, uri string) (string, error) {
	const longest = 16 << 10
	if len(uri) > longest {
		return "", invalid("it has %d characters, more than %d", len(uri), longest)
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil: // the error would tell the URI
		return "", invalid("it cannot be read")
	case u.Scheme == "" || u.Host == "" || u.Opaque != "":
		return "", invalid("want scheme, host and path, as in %s/NAME", places[0].url())
	case u.User != nil:
		return "", invalid("it carries a user or a password")
	case u.Fragment != "" || strings.Contains(uri, "#"):
		return "", invalid("it carries a fragment; in a name, # is written %%23")
	}
	for parameter := range u.Query() {
		if p := strings.ToLower(parameter); p == "snapshot" || p == "versionid" {
			return "", invalid("it names a %s, and the hub reads a blob as it is", p)
		}
	}
	account := place{scheme: strings.ToLower(u.Scheme), host: hostOf(u)}
	of := slices.IndexFunc(places, func(p place) bool {
		isHost := p.scheme == account.scheme && p.host == account.host || anyHost && strings.HasPrefix(account.scheme, "http")
		return isHost && strings.HasPrefix(u.EscapedPath(), p.path+"/")
	})
	if of < 0 {
		return "", invalid("it is of a foreign account at %.100q; the hub's is %s", account.account(), places[0].account())
	}
	escaped, isIn := strings.CutPrefix(u.EscapedPath(), places[of].url()[len(places[of].scheme+"://"+places[of].host):]+"/")
	if !isIn {
		return "", invalid("it is of a foreign container; the hub's is %s", places[0].container)
	}
	name, err := url.PathUnescape(escaped)
	if err != nil {
		return "", invalid("its path cannot be read")
	}
	if err := checkForeignName(name); err != nil {
		return "", err
	}
	return name, nil
}

// checkForeignName refuses names that mean one thing here and another elsewhere.
// Domains may use more of Unicode than the hub does.
func checkForeignName(name string) error {
	const longest = 1024
	switch segments := strings.Split(name, "/"); {
	case name == "":
		return invalid("it names no blob")
	case !utf8.ValidString(name) || utf8.RuneCountInString(name) > longest:
		return invalid("the name of the blob is not UTF-8, or has more than %d characters", longest)
	case slices.Contains(segments, "") || slices.Contains(segments, ".") || slices.Contains(segments, ".."):
		return invalid("the name of the blob has a segment that is empty, . or ..")
	case strings.Contains(name, `\`) || strings.ContainsFunc(name, unicode.IsControl):
		return invalid("the name of the blob has a backslash or a control character")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return domain.Errorf(domain.Invalid, "content URI: "+format, args...)
}
