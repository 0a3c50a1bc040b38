package embedded

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkAuthorization refuses a request unless it is signed with the account key or has a trusted token.
func (a *Account) checkAuthorization(r *http.Request, query url.Values) error {
	kind, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if a.options.TrustTokens && hasToken(r) {
		return nil
	}
	if kind == "" {
		return forbiddenError("it has neither a header Authorization nor a shared access signature")
	}
	const skew = 15 * time.Minute
	date := r.Header.Get("X-Ms-Date")
	signed, err := http.ParseTime(cmp.Or(date, r.Header.Get("Date")))
	if err != nil || time.Since(signed).Abs() > skew {
		return forbiddenError("its date is missing, or more than %s off this machine's clock", skew)
	}
	if kind != "SharedKey" {
		return forbiddenError("it is not signed with SharedKey, which is required")
	}
	name, signature, _ := strings.Cut(credential, ":")
	if name != a.options.Account {
		return forbiddenError("it is signed for the account %.30q, and this is %s", name, a.options.Account)
	}
	given, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return forbiddenError("its signature is not base64")
	}
	paths := []string{r.URL.EscapedPath()}
	if primary, isSecondary := a.toPrimary(paths[0]); isSecondary {
		paths = append(paths, primary) // some clients sign the path of the primary endpoint
	}
	for _, path := range paths {
		// Clients use two different sort orders for headers.
		for _, order := range []func(a, b string) int{strings.Compare, compareWindows} {
			mac := hmac.New(sha256.New, a.key)
			mac.Write([]byte(a.stringToSign(r, path, query, date, order)))
			if hmac.Equal(given, mac.Sum(nil)) {
				return nil
			}
		}
	}
	return forbiddenError("its signature is not that of the account's key")
}

// hasToken reports whether a request has a token of Microsoft Entra ID.
func hasToken(r *http.Request) bool {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return kind == "Bearer" && token != ""
}

func forbiddenError(format string, args ...any) error {
	detail := fmt.Sprintf(format, args...)
	return &blobError{
		status: http.StatusForbidden, code: "AuthenticationFailed",
		message: "the request was refused: " + detail, authenticationDetail: detail,
	}
}

// stringToSign returns the text that a client signs. path is escaped; order sorts the headers.
func (a *Account) stringToSign(r *http.Request, path string, query url.Values, date string, order func(a, b string) int) string {
	length := ""
	if r.ContentLength > 0 {
		length = strconv.FormatInt(r.ContentLength, 10)
	}
	plainDate := r.Header.Get("Date")
	if date != "" {
		plainDate = ""
	}
	lines := []string{
		r.Method, r.Header.Get("Content-Encoding"), r.Header.Get("Content-Language"), length,
		r.Header.Get("Content-MD5"), r.Header.Get("Content-Type"), plainDate, r.Header.Get("If-Modified-Since"),
		r.Header.Get("If-Match"), r.Header.Get("If-None-Match"), r.Header.Get("If-Unmodified-Since"), r.Header.Get("Range"),
	}
	lines = append(lines, canonicalHeaders(r.Header, order)...)
	lines = append(lines, "/"+a.options.Account+path)
	lines = append(lines, canonicalQuery(query)...)
	return strings.Join(lines, "\n")
}

func canonicalHeaders(h http.Header, order func(a, b string) int) []string {
	var names []string
	values := map[string]string{}
	for name, all := range h {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ms-") {
			names = append(names, name)
			values[name] = strings.Join(all, ",")
		}
	}
	slices.SortFunc(names, order)
	for i, name := range names {
		names[i] = name + ":" + values[name]
	}
	return names
}

func canonicalQuery(query url.Values) []string {
	var lines []string
	for name, values := range query {
		values = slices.Sorted(slices.Values(values))
		lines = append(lines, strings.ToLower(name)+":"+strings.Join(values, ","))
	}
	slices.Sort(lines)
	return lines
}

// compareWindows compares in the sort order of Windows, which some clients use. It ignores dashes, and sorts
// underscores before digits.
func compareWindows(a, b string) int {
	return strings.Compare(windowsOrder.Replace(a), windowsOrder.Replace(b))
}

var windowsOrder = strings.NewReplacer("-", "", "_", "!")
