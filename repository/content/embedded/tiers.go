package embedded

import (
	"cmp"
	"net/http"
	"strings"
	"time"
)

const (
	defaultTier = "Hot" // tier of a blob for which no client has set a tier
	archiveTier = "Archive"
)

var accessTiers = []string{defaultTier, "Cool", "Cold", archiveTier}

// applyTier sets the tier of a version from the request headers, or to the default tier.
func (a *Account) applyTier(v *version, h http.Header) (err error) {
	v.Tier, v.TierChanged = "", time.Time{}
	if v.Tier, err = readTier(h); v.Tier != "" {
		v.TierChanged = a.options.Clock().UTC().Truncate(time.Second)
	}
	return err
}

// readTier reads the tier from the request headers. It returns "" if none exists.
func readTier(h http.Header) (string, error) {
	text := h.Get("X-Ms-Access-Tier")
	if text == "" {
		return "", nil
	}
	for _, tier := range accessTiers {
		if strings.EqualFold(text, tier) {
			return tier, nil
		}
	}
	return "", newBlobError(400, "InvalidHeaderValue", "header x-ms-access-tier: %.20q; want one of %s", text, strings.Join(accessTiers, ", "))
}

// setTierHeaders sets the response headers that describe the tier of v.
func (v *version) setTierHeaders(h http.Header) {
	h.Set("X-Ms-Access-Tier", cmp.Or(v.Tier, defaultTier))
	h.Set("X-Ms-Access-Tier-Inferred", "false")
	if v.Tier == "" {
		h.Set("X-Ms-Access-Tier-Inferred", "true")
	}
	if !v.TierChanged.IsZero() {
		h.Set("X-Ms-Access-Tier-Change-Time", v.TierChanged.UTC().Format(http.TimeFormat))
	}
}

// A listedTier contains the XML elements for a blob's tier in a list.
type listedTier struct {
	AccessTier           string
	AccessTierInferred   bool   `xml:",omitempty"`
	AccessTierChangeTime string `xml:",omitempty"`
}

func newListedTier(v *version) listedTier {
	listed := listedTier{AccessTier: cmp.Or(v.Tier, defaultTier), AccessTierInferred: v.Tier == ""}
	if !v.TierChanged.IsZero() {
		listed.AccessTierChangeTime = v.TierChanged.UTC().Format(http.TimeFormat)
	}
	return listed
}

// checkArchived returns an error if the blob is archived, so that its content is inaccessible.
func (v *version) checkArchived() error {
	if v.Tier == archiveTier {
		return newBlobError(http.StatusConflict, "BlobArchived", "This operation is not permitted on an archived blob. Set another tier first")
	}
	return nil
}

// setTier changes the tier of a blob. As on Azure, the etag and modification time do not change. Unlike on Azure,
// rehydration from the archive tier is immediate.
func (a *Account) setTier(c *blobCall) (*blobResponse, error) {
	tier, err := readTier(c.Header)
	if err != nil {
		return nil, err
	}
	if tier == "" {
		return nil, newBlobError(400, "MissingRequiredHeader", "header x-ms-access-tier: want one of %s", strings.Join(accessTiers, ", "))
	}
	status := http.StatusOK
	_, err = a.changeVersion(c, newVersion{isSilent: true, keepsETag: true}, func(v *version) {
		if status = http.StatusOK; v.Tier == archiveTier && tier != archiveTier {
			status = http.StatusAccepted // the status of Azure, where rehydration takes hours
		}
		if cmp.Or(v.Tier, defaultTier) != tier {
			v.TierChanged = a.options.Clock().UTC().Truncate(time.Second)
		}
		v.Tier = tier
	})
	if err != nil {
		return nil, err
	}
	return newResponse(status), nil
}
