package embedded

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// corsRules permit web pages from other origins to use the account. The first matching rule applies.
type corsRules struct {
	Rules []corsRule `xml:"CorsRule" json:"rules,omitempty"`
}

// A corsRule consists of comma-separated lists. In an entry, an asterisk matches any text.
type corsRule struct {
	AllowedOrigins  string `json:"allowedOrigins,omitempty"`
	AllowedMethods  string `json:"allowedMethods,omitempty"`
	AllowedHeaders  string `json:"allowedHeaders,omitempty"`
	ExposedHeaders  string `json:"exposedHeaders,omitempty"`
	MaxAgeInSeconds int    `json:"maxAgeInSeconds,omitempty"`
}

var corsMethods = []string{"DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH", "CONNECT"}

// validate returns an error for rules that Azure refuses.
func (s *corsRules) validate() error {
	const maxRules, maxBytes = 5, 2 << 10 // limits of Azure
	total := 0
	for _, rule := range s.Rules {
		total += len(rule.AllowedOrigins) + len(rule.AllowedMethods) + len(rule.AllowedHeaders) + len(rule.ExposedHeaders)
		if rule.AllowedOrigins == "" || rule.AllowedMethods == "" || rule.MaxAgeInSeconds < 0 {
			return newBlobError(400, "InvalidXmlDocument", "a CORS rule has AllowedOrigins, AllowedMethods, and MaxAgeInSeconds from 0 on")
		}
		for method := range strings.SplitSeq(rule.AllowedMethods, ",") {
			if method = strings.TrimSpace(method); !slices.Contains(corsMethods, method) {
				return newBlobError(400, "InvalidXmlNodeValue", "a CORS rule allows the method %.20q; want some of %s", method, strings.Join(corsMethods, ", "))
			}
		}
	}
	if len(s.Rules) > maxRules || total > maxBytes {
		return newBlobError(400, "InvalidXmlDocument", "there are %d CORS rules of %d bytes; want up to %d rules and %d bytes", len(s.Rules), total, maxRules, maxBytes)
	}
	return nil
}

// findRule returns the first rule that permits an origin, a method and a comma-separated list of headers, or nil.
func (s *corsRules) findRule(origin, method, headers string) *corsRule {
	if origin == "" {
		return nil
	}
	for i, rule := range s.Rules {
		if matchesEntry(rule.AllowedOrigins, origin) && matchesEntry(rule.AllowedMethods, method) && rule.allowsHeaders(headers) {
			return &s.Rules[i]
		}
	}
	return nil
}

func (r *corsRule) allowsHeaders(headers string) bool {
	for header := range strings.SplitSeq(headers, ",") {
		if header = strings.TrimSpace(header); header != "" && !matchesEntry(r.AllowedHeaders, header) {
			return false
		}
	}
	return true
}

// matchesEntry reports whether an entry of a comma-separated list matches text. It ignores case; the first asterisk of
// an entry matches any text.
func matchesEntry(list, text string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	for entry := range strings.SplitSeq(strings.ToLower(list), ",") {
		start, end, isPattern := strings.Cut(strings.TrimSpace(entry), "*")
		if !isPattern && text == start ||
			isPattern && len(text) >= len(start)+len(end) && strings.HasPrefix(text, start) && strings.HasSuffix(text, end) {
			return true
		}
	}
	return false
}

// corsRules returns the current rules.
func (a *Account) corsRules() *corsRules {
	if stored := a.service.Load(); stored != nil && stored.CORS != nil {
		return stored.CORS
	}
	return &corsRules{}
}

// respondToPreflight responds to a preflight request, with which a browser asks whether a web page may send a request.
// It needs no signature.
func (a *Account) respondToPreflight(r *http.Request) (*blobResponse, error) {
	const method, headers = "Access-Control-Request-Method", "Access-Control-Request-Headers"
	if r.Header.Get("Origin") == "" || r.Header.Get(method) == "" {
		return nil, newBlobError(400, "InvalidHeaderValue", "A required CORS header is not present. An OPTIONS request needs Origin and %s", method)
	}
	rule := a.corsRules().findRule(r.Header.Get("Origin"), r.Header.Get(method), r.Header.Get(headers))
	if rule == nil {
		return nil, newBlobError(http.StatusForbidden, "CorsPreflightFailure", "CORS not enabled or no matching rule found for this request.")
	}
	resp := newResponse(http.StatusOK)
	rule.allowOrigin(resp.header, r.Header.Get("Origin"))
	resp.header.Set("Access-Control-Allow-Methods", r.Header.Get(method))
	if asked := r.Header.Get(headers); asked != "" {
		resp.header.Set("Access-Control-Allow-Headers", asked)
	}
	resp.header.Set("Access-Control-Max-Age", strconv.Itoa(rule.MaxAgeInSeconds))
	return resp, nil
}

// setCORS sets the headers that permit a web page from another origin to read the response.
func (a *Account) setCORS(resp *blobResponse, r *http.Request) {
	rules := a.corsRules()
	if r.Method == http.MethodOptions || r.Header.Get("Origin") == "" || len(rules.Rules) == 0 {
		return
	}
	rule := rules.findRule(r.Header.Get("Origin"), r.Method, "")
	if rule == nil {
		resp.header.Set("Vary", "Origin")
		return
	}
	rule.allowOrigin(resp.header, r.Header.Get("Origin"))
	var exposed []string
	for name := range resp.header {
		if matchesEntry(rule.ExposedHeaders, name) {
			exposed = append(exposed, strings.ToLower(name))
		}
	}
	slices.Sort(exposed)
	resp.header.Set("Access-Control-Expose-Headers", strings.Join(exposed, ","))
}

func (r *corsRule) allowOrigin(h http.Header, origin string) {
	if strings.TrimSpace(r.AllowedOrigins) == "*" {
		h.Set("Access-Control-Allow-Origin", "*")
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Vary", "Origin")
}
