package lens

// Unix is an RFC 3339 time in Unix seconds, which is how the API server writes
// times in JSON. Its error is [ErrTime].
func Unix(s string) (int64, error) {
	// 2006-01-02T15:04:05[.999999](Z|±07:00)
	if len(s) < 20 || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return 0, ErrTime
	}
	year, ok1 := number(s[0:4], 9999)
	month, ok2 := number(s[5:7], 12)
	day, ok3 := number(s[8:10], 31)
	hour, ok4 := number(s[11:13], 23)
	minute, ok5 := number(s[14:16], 59)
	second, ok6 := number(s[17:19], 59)
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || month == 0 || day == 0 || day > daysIn(year, month) {
		return 0, ErrTime
	}
	zone := s[19:]
	if zone[0] == '.' {
		i := 1
		for i < len(zone) && '0' <= zone[i] && zone[i] <= '9' {
			i++
		}
		if i == 1 {
			return 0, ErrTime
		}
		zone = zone[i:]
	}
	var offset int64
	switch {
	case zone == "Z":
	case len(zone) == 6 && (zone[0] == '+' || zone[0] == '-') && zone[3] == ':':
		h, ok1 := number(zone[1:3], 24) // as the API's own types read it
		m, ok2 := number(zone[4:6], 60)
		if !ok1 || !ok2 {
			return 0, ErrTime
		}
		if offset = h*3600 + m*60; zone[0] == '-' {
			offset = -offset
		}
	default:
		return 0, ErrTime
	}
	return days(year, month, day)*86400 + hour*3600 + minute*60 + second - offset, nil
}

func number(s string, most int64) (int64, bool) {
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, n <= most
}

func daysIn(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// days is the days from 1970-01-01, in years that begin in March, so that the
// leap day is a year's last.
func days(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	return 365*year + floor(year, 4) - floor(year, 100) + floor(year, 400) + (153*(month-3)+2)/5 + day - 1 - 719468
}

// floor divides rounding down; year is -1 at the least.
func floor(year, by int64) int64 { return (year+by)/by - 1 }
