package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// maxSkew is the maximum difference between the clocks of a client and of this machine.
const maxSkew = 15 * time.Minute

func unauthorizedError(message string) error {
	return &engine.Error{Status: http.StatusUnauthorized, Message: message}
}

// checkSignature verifies the signature of a request. Clients sign the method, the resource and the date with the
// account key.
func (s *Server) checkSignature(r *serverRequest) error {
	header := r.Header.Get("Authorization")
	if text, err := url.QueryUnescape(header); err == nil && strings.HasPrefix(text, "type=") && strings.Contains(header, "%") {
		header = text
	}
	kind, rest, _ := strings.Cut(header, "&")
	version, signature, _ := strings.Cut(rest, "&")
	signature, ok := strings.CutPrefix(signature, "sig=")
	switch {
	case header == "":
		return unauthorizedError("the request has no Authorization header")
	case kind == "type=aad" && version == "ver=1.0" && ok:
		return s.checkToken(signature)
	case kind != "type=master" || version != "ver=1.0" || !ok:
		return unauthorizedError("the Authorization header is not type=master&ver=1.0&sig=… or type=aad&ver=1.0&sig=…")
	}
	date := r.Header.Get("x-ms-date")
	if !s.hasSignature(r, date, signature) {
		return unauthorizedError("the signature does not fit the account key; check the key, and that the request was not changed in transit")
	}
	at, err := http.ParseTime(date)
	if err != nil {
		return unauthorizedError("the x-ms-date header is not a date: " + date)
	}
	if skew := time.Since(at).Abs(); skew > maxSkew {
		return &engine.Error{Status: http.StatusForbidden, Message: "the date of the request is " + skew.String() + " off; set the clock"}
	}
	return nil
}

// hasSignature reports whether the signature is correct for either the names in the path or the resource id of the last
// resource.
func (s *Server) hasSignature(r *serverRequest, date, signature string) bool {
	if hmac.Equal([]byte(signature), []byte(s.signRequest(r, date))) {
		return true
	}
	kind, _ := signedResource(r.segments)
	id := signedResourceID(r.segments)
	return id != "" && hmac.Equal([]byte(signature), []byte(s.signResource(r.Method, kind, id, date)))
}

// signRequest returns the signature for the names in the path.
func (s *Server) signRequest(r *serverRequest, date string) string {
	kind, link := signedResource(r.segments)
	return s.signResource(r.Method, kind, link, date)
}

func (s *Server) signResource(method, kind, link, date string) string {
	mac := hmac.New(sha256.New, s.key)
	for _, line := range []string{strings.ToLower(method), kind, link, strings.ToLower(date), ""} {
		_, _ = mac.Write([]byte(line)) // never fails
		_, _ = mac.Write([]byte{'\n'})
	}
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// checkToken accepts the tokens that emulators use: a JSON Web Token with the account key in place of the signature. It
// refuses tokens of Microsoft Entra ID, which it cannot verify.
func (s *Server) checkToken(token string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return unauthorizedError("the token is not a JSON Web Token")
	}
	key, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !hmac.Equal(key, []byte(base64.StdEncoding.EncodeToString(s.key))) {
		return unauthorizedError("the token is not one for emulators, which ends in the account key instead of a signature")
	}
	var claims struct {
		NotBefore int64 `json:"nbf"`
		Expires   int64 `json:"exp"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return unauthorizedError("the claims of the token cannot be read")
	}
	now := time.Now()
	if now.Add(maxSkew).Unix() < claims.NotBefore || claims.Expires != 0 && now.Add(-maxSkew).Unix() > claims.Expires {
		return unauthorizedError("the token is not valid at this time")
	}
	return nil
}

// signedResource returns the type and link of the resource that a client signs. For a feed, the link is that of the
// parent.
func signedResource(segments []string) (kind, link string) {
	n := len(segments)
	if n == 0 {
		return "", ""
	}
	if n == 2 && strings.EqualFold(segments[0], "offers") { // clients sign the resource id of an offer
		return "offers", strings.ToLower(segments[1])
	}
	if n == 6 && segments[4] == "operations" { // for an operation, clients sign the container
		return "colls", strings.Join(segments[:4], "/")
	}
	if n%2 == 1 {
		return strings.ToLower(segments[n-1]), strings.Join(segments[:n-1], "/")
	}
	return strings.ToLower(segments[n-2]), strings.Join(segments, "/")
}
