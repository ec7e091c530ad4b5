"""Operations of str and bytes. Know no records."""
