package selfhosted

import (
	"fmt"
	"regexp"
	"strconv"
)

// Version is a release of an engine. The zero value is an unknown one.
type Version struct {
	Text                string // as the server says it
	major, minor, patch int
	known               bool
}

// release is the front of a version, as Python packages are named: 0.32.0, 0.11.0rc2.dev12+g0123abc, 0.32.0+cpu.
var release = regexp.MustCompile(`^v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?((?:\.?(?:post|rc|a|b)\d*)*)(\.?dev\d*)?(?:\+[0-9A-Za-z.]*)?$`)

// ParseVersion reads a version. Builds from a source tree without tags call themselves 0.1.dev or 0.0.0.dev and say
// nothing about what is in them: such a version is not known.
func ParseVersion(text string) Version {
	v := Version{Text: text}
	m := release.FindStringSubmatch(text)
	if m == nil {
		return v
	}
	v.major, _ = strconv.Atoi(m[1]) // up to six digits: no error
	v.minor, _ = strconv.Atoi(m[2])
	v.patch, _ = strconv.Atoi(m[3]) // "" is 0
	untagged := m[5] != "" && v.major == 0 && v.minor <= 1
	v.known = !untagged
	return v
}

// AtLeast reports whether the version is the given one or a later one; pre-releases count as their release. False if it
// is not known.
func (v Version) AtLeast(major, minor, patch int) bool {
	if !v.known {
		return false
	}
	for _, d := range [3]int{v.major - major, v.minor - minor, v.patch - patch} {
		if d != 0 {
			return d > 0
		}
	}
	return true
}

// since is the first release that has something. exact says that the releases before it are known not to have it; otherwise it
// is not known of them.
type since struct {
	major, minor, patch int
	exact               bool
}

// Since is the support for something that came with a release.
func (v Version) Since(first since) Support {
	at := fmt.Sprintf("%d.%d.%d", first.major, first.minor, first.patch)
	switch {
	case !v.known && v.Text == "":
		return Unknown("the server reports no version")
	case !v.known:
		return Unknown(fmt.Sprintf("version %q says nothing", v.Text))
	case v.AtLeast(first.major, first.minor, first.patch):
		return Yes("version " + v.Text + ", there since " + at)
	case first.exact:
		return No("version " + v.Text + ", there since " + at)
	}
	return Unknown("version " + v.Text + ", seen in " + at)
}
