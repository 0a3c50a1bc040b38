package api

import (
	"net/http"
	"strconv"
	"strings"
)

// maxRanges is how many ranges a request may ask for. Each may mean reading the
// events of the bundle once more.
const maxRanges = 16

// ranged returns r without a header Range that is to be ignored, which RFC 9110
// has for units that nobody knows and for HEAD, and allows for many small ranges.
func ranged(r *http.Request) *http.Request {
	asked := r.Header["Range"]
	if len(asked) == 0 {
		return r
	}
	unit, set, _ := strings.Cut(asked[0], "=")
	c := *r
	c.Header = r.Header.Clone()
	if r.Method == http.MethodGet && len(asked) == 1 && strings.EqualFold(unit, "bytes") && strings.Count(set, ",") < maxRanges {
		c.Header.Set("Range", "bytes="+set)
	} else {
		c.Header.Del("Range")
	}
	return &c
}

// acceptsGzip reports that a client would rather have gzip than the body as it is.
func acceptsGzip(h http.Header) bool {
	quality := make(map[string]float64)
	for _, value := range h["Accept-Encoding"] {
		for element := range strings.SplitSeq(value, ",") {
			coding, parameters, _ := strings.Cut(element, ";")
			quality[strings.ToLower(strings.TrimSpace(coding))] = qualityOf(parameters)
		}
	}
	gzip, named := quality["gzip"]
	if !named {
		gzip = quality["*"]
	}
	return gzip > 0 && gzip >= quality["identity"]
}

// qualityOf returns the weight among the parameters, 1 if there is none, and 0 if
// it is malformed.
func qualityOf(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(0 <= q && q <= 1) {
			return 0
		}
		return q
	}
	return 1
}
