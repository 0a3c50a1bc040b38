package find

import (
	"encoding/base64"
	"encoding/json"

	"github.com/messagehub/messagehub/domain"
)

// maxToken is the maximum length of a token, in bytes.
const maxToken = 64 << 10

// A searchToken contains the position at which a search continues, and the counts so far.
type searchToken struct {
	ID        string `json:"id"`
	Found     int    `json:"found,omitempty"`
	Mailboxes int    `json:"mailboxes"`
	Unread    int    `json:"unread,omitempty"`
	Next      string `json:"next"`
}

func (t searchToken) String() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // cannot happen, because strings and numbers can be encoded
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// parseToken decodes a token. It fails with Invalid if the token belongs to a search for a different id.
func parseToken(s, id string) (t searchToken, err error) {
	if len(s) > maxToken {
		return t, domain.Errorf(domain.Invalid, "after: want the value of a previous answer, got %d characters", len(s))
	}
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	switch {
	case err != nil || t.Next == "" || t.Found < 0 || t.Mailboxes < 0 || t.Unread < 0:
		return t, domain.Errorf(domain.Invalid, "after: want the value of the previous answer; search again without it")
	case t.ID != id:
		return t, domain.Errorf(domain.Invalid, "after: it belongs to a search for %q; search again without it", domain.Shorten(t.ID))
	}
	return t, nil
}
