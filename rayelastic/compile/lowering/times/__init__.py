"""Operations of datetime, date, time and timedelta."""
