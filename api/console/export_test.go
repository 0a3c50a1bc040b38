package console

import (
	"slices"
	"strings"
)

// ShownBody returns the HTML of a body.
func ShownBody(body []byte) string {
	var b strings.Builder
	_ = shownBody(body).Render(&b) // writing to memory never fails
	return b.String()
}

// PathsOf returns the paths of all pages with the given method, relative to root.
func PathsOf(method string) (paths []string) {
	for _, p := range pages {
		if p.method == method {
			paths = append(paths, p.path)
		}
	}
	return slices.Clip(paths)
}

// Policy is the Content-Security-Policy of each page.
const Policy = policy

// The durations after which a session ends.
const (
	SessionIdle = sessionIdle
	SessionTime = sessionTime
)

// GroupDigits and Duration format numbers and durations for pages.
var (
	GroupDigits = groupDigits
	Duration    = duration
)

// AssetPath returns the path of an asset.
var AssetPath = assetPath

// TakeSample adds a sample to the charts, as Run does periodically.
func (c *Console) TakeSample() { c.takeSample() }

// SampleCount returns how many samples the charts have.
func (c *Console) SampleCount() int {
	c.samples.mu.Lock()
	defer c.samples.mu.Unlock()
	return len(c.samples.all)
}
