package ops

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hanzoai/k8s/host/manifest"
)

// checkText says what is wrong with text as a value of the field, in words that
// do not repeat it; "" is that nothing is. Text is never empty: an empty string
// is a field left out.
func (f *field) checkText(text string) string {
	if f.Max > 0 && int64(len(text)) > f.Max {
		return fmt.Sprintf("is longer than %d bytes", f.Max)
	}
	if len(f.Enum) > 0 && !slices.Contains(f.Enum, text) {
		return "is none of " + strings.Join(f.Enum, ", ")
	}
	switch f.Format {
	case manifest.Name:
		return first(validation.IsDNS1123Subdomain(text))
	case manifest.Label:
		return first(validation.IsDNS1123Label(text))
	case manifest.Selector:
		if _, err := labels.Parse(text); err != nil {
			return "is not a label selector, as in app=web,tier!=cache"
		}
	case manifest.KindName:
		if _, ok := lookupKind(text); !ok {
			return "is none of the kinds " + strings.Join(kindNames, ", ")
		}
	}
	return ""
}

// checkNumber says what is wrong with n as a value of the field. A zero is a
// field left out, unless the field is required.
func (f *field) checkNumber(n int64) string {
	switch {
	case n == 0 && !f.Required:
	case f.Min != nil && n < *f.Min:
		return fmt.Sprintf("is less than %d", *f.Min)
	case f.Max > 0 && n > f.Max:
		return fmt.Sprintf("is more than %d", f.Max)
	}
	return ""
}

// checkEntry says what is wrong with one entry of a map field.
func (f *field) checkEntry(key, value string) string {
	if f.Format != manifest.LabelKeys {
		return ""
	}
	if why := first(validation.IsQualifiedName(key)); why != "" {
		return "as a label key, " + why
	}
	if why := first(validation.IsValidLabelValue(value)); why != "" {
		return "as a label value, " + why
	}
	return ""
}

func first(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return reasons[0]
}
