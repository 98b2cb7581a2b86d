package registry

import (
	"net/url"
	"strings"
)

// Path is an absolute URL path of the given segments, each escaped.
func Path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}
