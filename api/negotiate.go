package api

import (
	"net/http"
	"strconv"
	"strings"
)

// acceptsGzip reports whether a client prefers gzip to the uncompressed body.
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

// qualityOf returns the quality value among the parameters, 1 if it is missing,
// and 0 if it is malformed.
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
