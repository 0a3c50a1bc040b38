package embedded

import (
	"cmp"
	"net/http"
	"strings"
	"time"
)

const (
	defaultTier = "Hot" // tier of blobs whose tier was never set
	archiveTier = "Archive"
)

var accessTiers = []string{defaultTier, "Cool", "Cold", archiveTier}

// applyTier sets the tier of a new version to the tier in the headers of a request. Without a header, the
// version has the default tier.
func (a *Account) applyTier(v *version, h http.Header) (err error) {
	v.Tier, v.TierChanged = "", time.Time{}
	if v.Tier, err = readTier(h); v.Tier != "" {
		v.TierChanged = a.options.Clock().UTC().Truncate(time.Second)
	}
	return err
}

// readTier reads the tier in the headers of a request. It returns "" if the header is missing.
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

// setTierHeaders sets the headers of v's tier.
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

// A listedTier has the XML elements of a blob's tier in a list.
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

// checkArchived refuses access to the content of an archived blob.
func (v *version) checkArchived() error {
	if v.Tier == archiveTier {
		return newBlobError(http.StatusConflict, "BlobArchived", "This operation is not permitted on an archived blob. Set another tier first")
	}
	return nil
}

// setTier changes the tier of a blob. Unlike on Azure, an archived blob is readable immediately afterwards.
// As on Azure, the etag and the modification time do not change.
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
			status = http.StatusAccepted // as on Azure, where this change takes hours
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
