package api

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/domain/subscribe"
)

// writeSubscription answers with a subscription. Its ETag is that of what the owner may change;
// how its calls proceed changes without it.
func writeSubscription(w http.ResponseWriter, status int, s *subscribe.Subscription) {
	setVersion(w, s)
	writeJSON(w, status, documentOfSubscription(s))
}

func setVersion(w http.ResponseWriter, s *subscribe.Subscription) {
	w.Header().Set("ETag", `"`+base64.RawURLEncoding.EncodeToString([]byte(s.Version))+`"`)
}

// matchOf returns which versions of a subscription a request is for, by its header If-Match. A
// tag that is no version of a subscription matches none.
func matchOf(r *http.Request) subscribe.Match {
	var m subscribe.Match
	for _, line := range r.Header.Values("If-Match") {
		for tag := range strings.SplitSeq(line, ",") { // versions have no comma
			tag = strings.TrimSpace(tag)
			if tag == "*" {
				return subscribe.Match{Exists: true}
			}
			version, err := base64.RawURLEncoding.DecodeString(strings.Trim(tag, `"`))
			if err != nil || len(tag) < 2 || tag[0] != '"' || tag[len(tag)-1] != '"' {
				version = []byte("none")
			}
			m.Versions = append(m.Versions, string(version))
		}
	}
	return m
}
